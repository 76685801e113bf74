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

/// A tensor in a file. Its bytes may start at any address, so copy them and never cast the pointer.
struct SafetensorsEntry {
  std::string name;
  std::string type;            // in the file's spelling: "F32"
  std::optional<DType> dtype;  // empty if longhand has no such type: "F16", "I64"
  Shape shape;
  std::span<const std::byte> bytes;
};

/// A safetensors file opened for reading. Its header is checked completely against the file before
/// anything is returned. Every fault is refused in one line that names file and tensor.
class SafetensorsFile {
 public:
  static constexpr std::uint64_t max_header = 100'000'000;  // bytes, the limit of other readers
  /// Maximum tensors, and metadata keys. Models of 10^12 parameters have about 10^5 tensors in all
  /// of their files, and reading that many takes a fraction of a second.
  static constexpr std::size_t max_entries = 250'000;
  static constexpr std::size_t max_name = 4096;  // bytes

  static SafetensorsFile open(const std::filesystem::path& path);

  /// Parses a file in memory. `bytes` must outlive the object; messages use `name`.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

  /// True if the file has checksums (core/safetensors_checksums.h), as files written by longhand
  /// have. The header's checksum is compared when the file is opened.
  bool has_checksums() const { return !checksums_.empty() || entries_.empty(); }
  /// Throws an Error if the bytes of a tensor do not match its checksum.
  void check_sums() const;

  /// The tensors in the order of their bytes.
  std::span<const SafetensorsEntry> entries() const& { return entries_; }
  std::span<const SafetensorsEntry> entries() const&& = delete;  // they would dangle
  const SafetensorsEntry* find(std::string_view name) const;     // null if there is none

  /// The tensor of that name. Throws an Error if it is missing or has an unsupported element type.
  const SafetensorsEntry& at(std::string_view name) const;

  /// The same. Throws an Error if its element type or shape differs.
  const SafetensorsEntry& at(std::string_view name, DType dtype, const Shape& shape) const;

  /// The values of an integer tensor (I32, I64, U8, BOOL). Throws an Error if one does not fit.
  std::vector<std::int32_t> to_i32(std::string_view name) const;

 private:
  const SafetensorsEntry& existing(std::string_view name) const;

  std::string name_;
  MappedFile file_;
  std::vector<SafetensorsEntry> entries_;
  std::vector<std::uint32_t> by_name_;  // indices of the entries, sorted by name
  std::map<std::string, std::string, std::less<>> metadata_;
  std::vector<std::string> checksums_;  // per entry; empty if the file has none
};

/// A tensor to write. Its bytes are requested once, when they are needed, and passed in pieces, so
/// a tensor may be larger than the available memory.
struct SafetensorsItem {
  using Give = std::function<void(std::span<const std::byte> piece)>;

  std::string name;
  DType dtype;
  Shape shape;
  std::function<void(const Give& give)> bytes;
};

/// Writes a file with checksums, completely or not at all (AtomicFile). The header is padded to 8
/// bytes and wider element types come first, otherwise in the given order, so every tensor is
/// aligned.
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsItem> items,
                       const std::map<std::string, std::string, std::less<>>& metadata = {});
void write_safetensors(const Folder& folder, const std::string& name,
                       std::span<const SafetensorsItem> items,
                       const std::map<std::string, std::string, std::less<>>& metadata = {});

}  // namespace longhand
