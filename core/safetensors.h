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

/// The safetensors format: 8 bytes, the header's length n (little-endian); n bytes of JSON,
///   {"__metadata__": {"key": "text", ...},
///    "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...},
/// padded with spaces; then the tensors' bytes, little-endian and row-major, which the offsets
/// cover from the header's end to the file's, without gap or overlap.

/// One tensor of a file. Its bytes may start at any address: copy them, never cast the pointer.
struct SafetensorsEntry {
  std::string name;
  std::string type;            // as the file has it: "F32"
  std::optional<DType> dtype;  // none where longhand has no such type: "F16", "I64"
  Shape shape;
  std::span<const std::byte> bytes;
};

/// A safetensors file opened for reading. All of its header is checked against the file before
/// anything is handed out; whatever is wrong is refused in one line naming the file and tensor.
class SafetensorsFile {
 public:
  static constexpr std::uint64_t max_header = 100'000'000;  // bytes, the limit of other readers
  /// Tensors, and metadata keys: models of 10^12 parameters have about 10^5 tensors in all their
  /// files together, and so many are read in a fraction of a second.
  static constexpr std::size_t max_entries = 250'000;
  static constexpr std::size_t max_name = 4096;  // bytes

  static SafetensorsFile open(const std::filesystem::path& path);

  /// Reads a file that is already in memory; `bytes` must outlive the object, `name` is what
  /// messages call it.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

  /// Whether the file has checksums (core/safetensors_checksums.h), as those that longhand writes
  /// do. The header is compared with its own when the file is opened.
  bool has_checksums() const { return !checksums_.empty() || entries_.empty(); }
  /// Refused where the bytes of a tensor have another checksum than the file says.
  void check_sums() const;

  /// The tensors in the order of their bytes.
  std::span<const SafetensorsEntry> entries() const& { return entries_; }
  std::span<const SafetensorsEntry> entries() const&& = delete;  // they would be gone
  const SafetensorsEntry* find(std::string_view name) const;     // null where there is none

  /// The tensor of that name; refused where it is missing or longhand has no such element type.
  const SafetensorsEntry& at(std::string_view name) const;

  /// The same, refused where its element type or shape is another.
  const SafetensorsEntry& at(std::string_view name, DType dtype, const Shape& shape) const;

  /// The values of an integer tensor (I32, I64, U8, BOOL); refused where one does not fit.
  std::vector<std::int32_t> to_i32(std::string_view name) const;

 private:
  const SafetensorsEntry& existing(std::string_view name) const;

  std::string name_;
  MappedFile file_;
  std::vector<SafetensorsEntry> entries_;
  std::vector<std::uint32_t> by_name_;  // places of the entries in the order of their names
  std::map<std::string, std::string, std::less<>> metadata_;
  std::vector<std::string> checksums_;  // of the entries; empty: the file has none
};

/// One tensor to write. Its bytes are asked for once, when their turn comes, and given piece after
/// piece: a tensor larger than the memory at hand can be written.
struct SafetensorsItem {
  using Give = std::function<void(std::span<const std::byte> piece)>;

  std::string name;
  DType dtype;
  Shape shape;
  std::function<void(const Give& give)> bytes;
};

/// Writes a file, whole or not at all (AtomicFile), with checksums. The header is padded to 8 bytes
/// and wider element types go first, otherwise in the order given, so that every tensor is aligned.
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsItem> items,
                       const std::map<std::string, std::string, std::less<>>& metadata = {});
void write_safetensors(const Folder& folder, const std::string& name,
                       std::span<const SafetensorsItem> items,
                       const std::map<std::string, std::string, std::less<>>& metadata = {});

}  // namespace longhand
