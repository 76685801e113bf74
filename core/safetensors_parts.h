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
///   NAME-00001-of-00003.safetensors, ...;
///   NAME.safetensors.index.json: {"metadata": {"total_size": BYTES OF ALL TENSORS},
///                                 "weight_map": {"TENSOR": "NAME-00001-of-00003.safetensors",
///                                 ...}}
/// The index is not trusted. It can refer only to files of its own folder, and each file must
/// contain the tensors that the index lists for it.
class SafetensorsParts {
 public:
  /// Opens NAME.safetensors in the folder or, if this file is missing, the parts that the index
  /// lists.
  static SafetensorsParts open(const std::filesystem::path& folder, const std::string& name);
  explicit SafetensorsParts(SafetensorsFile file);

  /// Name of the file or of the index, for messages.
  const std::string& name() const { return name_; }
  std::span<const SafetensorsFile> files() const& { return files_; }
  // The span would outlive a temporary object.
  std::span<const SafetensorsFile> files() const&& = delete;

  struct Location {
    const SafetensorsEntry* entry = nullptr;
    const SafetensorsFile* file = nullptr;
  };
  /// The file and entry of a tensor; both are null if the tensor is missing.
  Location find(std::string_view tensor) const;
  /// The entry of a tensor. Throws an Error if the tensor is missing, or if its element type or
  /// shape differs.
  const SafetensorsEntry& at(std::string_view tensor, DType dtype, const Shape& shape) const;

  /// Throws an Error unless the parts contain exactly the tensors of the index, each of them once,
  /// with total_size bytes in total. Files of other programs often do not meet this condition.
  void check_exact() const;
  /// Throws an Error if the bytes of a tensor do not match the tensor's checksum.
  void check_sums() const;
  bool has_checksums() const;  // true if all files have checksums

 private:
  SafetensorsParts() = default;
  void open_parts(const std::filesystem::path& folder);

  std::string name_;
  std::vector<SafetensorsFile> files_;
  // Maps the name of a tensor to the position of its file in files_. Empty if there is a single
  // file.
  std::map<std::string, std::size_t, std::less<>> part_;
  std::optional<std::int64_t> total_;  // size of all tensors in bytes, as stated in the index
};

/// Distributes tensors over several files, called parts. A part, including its header, has at most
/// `most` bytes. If `most` is 0, there is a single part. Throws an Error if a tensor is too large
/// for a part, or if there would be too many parts.
std::vector<std::vector<SafetensorsItem>> cut_into_parts(
    const std::string& name, std::span<const SafetensorsItem> items,
    const std::map<std::string, std::string, std::less<>>& metadata, std::uint64_t most);

/// An entry of the index, which lists the files of all tensors: the name of a tensor, the name of
/// its file, and the tensor's size in bytes.
struct IndexedTensor {
  std::string name, file;
  std::uint64_t bytes = 0;
};
/// Writes some of the files (parts) over which tensors were distributed. There are `parts` files in
/// total, and some[i] is written to file number first + i, counted from 0. Returns the index
/// entries of all tensors that were written. The caller that writes the last file must also write
/// the index.
std::vector<IndexedTensor> write_parts(
    const Folder& folder, const std::string& name,
    std::span<const std::vector<SafetensorsItem>> some,
    const std::map<std::string, std::string, std::less<>>& metadata, std::size_t first,
    std::size_t parts);
void write_index(const Folder& folder, const std::string& name,
                 std::span<const IndexedTensor> tensors);

/// Writes NAME.safetensors. If this file would exceed `most` bytes (0: no limit), writes parts and
/// their index instead. Every part contains the metadata. Each file appears completely or not at
/// all.
void write_safetensors_parts(const std::filesystem::path& folder, const std::string& name,
                             std::span<const SafetensorsItem> items,
                             const std::map<std::string, std::string, std::less<>>& metadata,
                             std::uint64_t most);
void write_safetensors_parts(const Folder& folder, const std::string& name,
                             std::span<const SafetensorsItem> items,
                             const std::map<std::string, std::string, std::less<>>& metadata,
                             std::uint64_t most);

}  // namespace longhand
