#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/folder.h"
#include "core/mapped_file.h"
#include "core/shape.h"

namespace longhand {

/// The safetensors format. A file consists of
///   8 bytes: the header's length n, little-endian;
///   n bytes: the header, JSON padded with spaces,
///     {"__metadata__": {"key": "text", ...},
///      "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...};
///   the tensors' bytes, little-endian and row-major.
/// The offsets cover all bytes after the header without gap or overlap.

/// A tensor in a file. Its bytes may begin at any address. They must therefore be read with memcpy,
/// not through a pointer to the element type.
struct SafetensorsEntry {
  std::string name;
  std::string type;  // element type as written in the file, such as "F32"
  /// Empty if longhand does not support the type, such as "F16" and "I64".
  std::optional<DType> dtype;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// A safetensors file that is open for reading. Opening checks that the whole header agrees with
/// the file. Every fault throws a one-line Error that names the file and the tensor.
class SafetensorsFile {
 public:
  /// Maximum size of the header in bytes, as in other readers.
  static constexpr std::uint64_t max_header = 100'000'000;
  /// Maximum number of tensors, and maximum number of metadata keys. A model with 10^12 parameters
  /// has about 10^5 tensors in all of its files together. A header with 250,000 entries is parsed
  /// in a fraction of a second.
  static constexpr std::size_t max_entries = 250'000;
  static constexpr std::size_t max_name = 4096;  // bytes

  static SafetensorsFile open(const std::filesystem::path& path);

  /// Parses a file in memory. `bytes` must outlive the returned SafetensorsFile. Error messages
  /// contain `name`, the name of the file.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

  /// True if the file contains checksums (core/safetensors_checksums.h), as files written by
  /// longhand do, or if it has no tensors. A checksum of the header is verified when the file is
  /// opened.
  bool has_checksums() const { return !checksums_.empty() || entries_.empty(); }
  /// Throws an Error if the bytes of a tensor do not match their checksum.
  void check_sums() const;
  /// Removes the pages of a tensor's bytes from the process's memory, if the file is mapped. They
  /// are read again at the next access.
  void forget(const SafetensorsEntry& entry) const { file_.forget(entry.bytes); }

  /// The tensors in the order of their bytes in the file.
  std::span<const SafetensorsEntry> entries() const& { return entries_; }
  /// Deleted, because the span would outlive a temporary SafetensorsFile.
  std::span<const SafetensorsEntry> entries() const&& = delete;
  const SafetensorsEntry* find(std::string_view name) const;  // null if the file has no such tensor

  /// The tensor with this name. Throws an Error if it is missing or has an unsupported element
  /// type.
  const SafetensorsEntry& at(std::string_view name) const;

  /// Like at(name). Also throws an Error if the tensor's element type is not `dtype` or its shape
  /// is not `shape`.
  const SafetensorsEntry& at(std::string_view name, DType dtype, const Shape& shape) const;

  /// The values of an integer tensor (I32, I64, U8, BOOL). Throws an Error if a value does not fit
  /// in 32 bits.
  std::vector<std::int32_t> to_i32(std::string_view name) const;

 private:
  const SafetensorsEntry& existing(std::string_view name) const;

  std::string name_;
  MappedFile file_;
  std::vector<SafetensorsEntry> entries_;
  std::vector<std::uint32_t> by_name_;  // indices of the entries in the order of their names
  std::map<std::string, std::string, std::less<>> metadata_;
  std::vector<std::string> checksums_;  // one per entry; empty if the file has no checksums
};

/// A tensor to write. Its bytes are requested once, when they are written, and passed in pieces. A
/// tensor may therefore be larger than the available memory.
struct SafetensorsItem {
  using Give = std::function<void(std::span<const std::byte> piece)>;

  std::string name;
  DType dtype;
  Shape shape;
  std::function<void(const Give& give)> bytes;
};

/// Writes a file with checksums. The file appears completely or not at all (AtomicFile). To align
/// every tensor, the header is padded to a multiple of 8 bytes, and tensors are sorted by
/// descending size of their element type. Tensors with elements of equal size keep their order.
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsItem> items,
                       const std::map<std::string, std::string, std::less<>>& metadata = {});
void write_safetensors(const Folder& folder, const std::string& name,
                       std::span<const SafetensorsItem> items,
                       const std::map<std::string, std::string, std::less<>>& metadata = {});

}  // namespace longhand
