#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"

namespace longhand {

/// Tensors in one file, NAME.safetensors, or in several parts and a file that says which part has
/// which tensor, the way large models are passed on:
///   NAME-00001-of-00003.safetensors, ...
///   NAME.safetensors.index.json: {"metadata": {"total_size": BYTES OF ALL TENSORS},
///                                 "weight_map": {"TENSOR": "NAME-00001-of-00003.safetensors",
///                                 ...}}
/// The index may come from outside: it names files of its own folder only, and each must have what
/// is said to be there.
class SafetensorsParts {
 public:
  /// NAME.safetensors of the folder, or, where there is none, the parts that its index names.
  static SafetensorsParts open(const std::filesystem::path& folder, const std::string& name);
  explicit SafetensorsParts(SafetensorsFile file);

  /// The file, or the index: what messages call it.
  const std::string& name() const { return name_; }
  std::span<const SafetensorsFile> files() const& { return files_; }
  std::span<const SafetensorsFile> files() const&& = delete;  // they would be gone

  struct Location {
    const SafetensorsEntry* entry = nullptr;
    const SafetensorsFile* file = nullptr;
  };
  /// Where a tensor is; both null where it is not.
  Location find(std::string_view tensor) const;
  /// The tensor; refused where it is missing, or its element type or shape is another.
  const SafetensorsEntry& at(std::string_view tensor, DType dtype, const Shape& shape) const;

  /// Refused unless the parts hold what the index names and nothing else, each tensor once, of
  /// total_size bytes altogether. Folders made by other programs are seldom as strict.
  void check_exact() const;
  /// Refused where a tensor's bytes have another checksum than its file says.
  void check_sums() const;
  bool has_checksums() const;  // all of them

 private:
  SafetensorsParts() = default;
  void open_parts(const std::filesystem::path& folder);

  std::string name_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t, std::less<>> part_;  // which file has it; empty: one file
  std::optional<std::int64_t> total_;                     // as the index says
};

/// Which items go into which part so that none is larger than `most` bytes, its header included;
/// one part where `most` is 0. Refused where an item fits into none, or parts are too many.
std::vector<std::vector<SafetensorsItem>> cut_into_parts(
    const std::string& name, std::span<const SafetensorsItem> items,
    const std::map<std::string, std::string, std::less<>>& metadata, std::uint64_t most);

/// What the index says of one tensor: which file has it, and how many bytes it takes.
struct IndexedTensor {
  std::string name, file;
  std::uint64_t bytes = 0;
};
/// Writes parts `first`, `first` + 1, ... of `parts`, from 0, and returns what their index is to
/// say of them: whoever writes the last part of all writes the index.
std::vector<IndexedTensor> write_parts(
    const Folder& folder, const std::string& name,
    std::span<const std::vector<SafetensorsItem>> some,
    const std::map<std::string, std::string, std::less<>>& metadata, std::size_t first,
    std::size_t parts);
void write_index(const Folder& folder, const std::string& name,
                 std::span<const IndexedTensor> tensors);

/// Writes NAME.safetensors, or parts and then their index where one file would be larger than
/// `most` bytes (0: no limit). Every part has the metadata. Each file appears whole or not at all.
void write_safetensors_parts(const std::filesystem::path& folder, const std::string& name,
                             std::span<const SafetensorsItem> items,
                             const std::map<std::string, std::string, std::less<>>& metadata,
                             std::uint64_t most);
void write_safetensors_parts(const Folder& folder, const std::string& name,
                             std::span<const SafetensorsItem> items,
                             const std::map<std::string, std::string, std::less<>>& metadata,
                             std::uint64_t most);

}  // namespace longhand
