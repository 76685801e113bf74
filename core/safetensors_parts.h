#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"

namespace longhand {

/// Tensors in one file, NAME.safetensors, or in several parts with an index. Parts are usual for
/// large models:
///   NAME-00001-of-00003.safetensors, ...
///   NAME.safetensors.index.json: {"metadata": {"total_size": BYTES OF ALL TENSORS},
///                                 "weight_map": {"TENSOR": "NAME-00001-of-00003.safetensors",
///                                 ...}}
/// The index may be untrusted. It can only refer to files of its own folder, and each file must
/// contain the tensors that the index lists for it.
class SafetensorsParts {
 public:
  /// Opens NAME.safetensors in the folder or, if it is missing, the parts listed in its index.
  static SafetensorsParts open(const std::filesystem::path& folder, const std::string& name);
  explicit SafetensorsParts(SafetensorsFile file);

  /// Name of the file or of the index, for messages.
  const std::string& name() const { return name_; }
  std::span<const SafetensorsFile> files() const& { return files_; }
  std::span<const SafetensorsFile> files() const&& = delete;  // the span would dangle

  struct Location {
    const SafetensorsEntry* entry = nullptr;
    const SafetensorsFile* file = nullptr;
  };
  /// The file and entry of a tensor; both are null if the tensor is missing.
  Location find(std::string_view tensor) const;
  /// The entry of a tensor. Throws an Error if it is missing or its element type or shape differs.
  const SafetensorsEntry& at(std::string_view tensor, DType dtype, const Shape& shape) const;

  /// Throws an Error unless the parts contain exactly the tensors of the index, each once, with
  /// total_size bytes in total. Files written by other programs often do not satisfy this.
  void check_exact() const;
  /// Throws an Error if the bytes of a tensor do not match their checksum.
  void check_sums() const;
  bool has_checksums() const;  // true if all files have checksums

 private:
  SafetensorsParts() = default;
  void open_parts(const std::filesystem::path& folder);

  std::string name_;
  std::vector<SafetensorsFile> files_;
  // Index of the file of each tensor; empty if there is a single file.
  std::map<std::string, std::size_t, std::less<>> part_;
  std::optional<std::int64_t> total_;  // as stated in the index
};

/// Distributes items over parts of at most `most` bytes, including the header. If `most` is 0,
/// there is a single part. Throws an Error if an item is too large for a part, or if there are too
/// many parts.
std::vector<std::vector<SafetensorsItem>> cut_into_parts(
    const std::string& name, std::span<const SafetensorsItem> items,
    const std::map<std::string, std::string, std::less<>>& metadata, std::uint64_t most);

/// An entry of the index: a tensor, the name of its file, and its size in bytes.
struct IndexedTensor {
  std::string name, file;
  std::uint64_t bytes = 0;
};
/// Writes the parts `some`. There are `parts` parts in total, and the first of `some` has number
/// `first`, counted from 0. Returns the index entries of the written tensors. The writer of the
/// last part also writes the index.
std::vector<IndexedTensor> write_parts(
    const Folder& folder, const std::string& name,
    std::span<const std::vector<SafetensorsItem>> some,
    const std::map<std::string, std::string, std::less<>>& metadata, std::size_t first,
    std::size_t parts);
void write_index(const Folder& folder, const std::string& name,
                 std::span<const IndexedTensor> tensors);

/// Writes NAME.safetensors, or parts and their index if a single file would exceed `most` bytes (0:
/// no limit). Every part contains the metadata. Each file appears completely or not at all.
void write_safetensors_parts(const std::filesystem::path& folder, const std::string& name,
                             std::span<const SafetensorsItem> items,
                             const std::map<std::string, std::string, std::less<>>& metadata,
                             std::uint64_t most);
void write_safetensors_parts(const Folder& folder, const std::string& name,
                             std::span<const SafetensorsItem> items,
                             const std::map<std::string, std::string, std::less<>>& metadata,
                             std::uint64_t most);

}  // namespace longhand
