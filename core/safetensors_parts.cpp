#include "core/safetensors_parts.h"

#include <algorithm>
#include <cstdio>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"
#include "core/safetensors_header.h"
#include "core/safetensors_index.h"

namespace fs = std::filesystem;

namespace longhand {
namespace {

fs::path whole_path(const fs::path& folder, const std::string& name) {
  return folder / (name + ".safetensors");
}

std::string index_name(const std::string& name) { return name + ".safetensors.index.json"; }

std::string part_name(const std::string& name, std::size_t part, std::size_t parts) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu", part + 1, parts);
  return name + numbers + ".safetensors";
}

std::uint64_t data_bytes(const SafetensorsItem& item) {
  return static_cast<std::uint64_t>(item.shape.size()) * size_of(item.dtype);
}

/// Upper bounds for the bytes of a file's header. The overload for metadata counts all bytes that
/// do not depend on the tensors: the metadata, the 8 bytes of the header's length, brackets and
/// padding. The overload for a tensor counts its name, checksum, dtype, four extents and two
/// offsets, with 20 digits for each number.
std::uint64_t header_bytes(const std::map<std::string, std::string, std::less<>>& metadata) {
  std::uint64_t bytes = 128;
  for (const auto& [key, value] : metadata) {
    bytes += json_string(key).size() + json_string(value).size() + 2;
  }
  return bytes;
}
std::uint64_t header_bytes(const SafetensorsItem& item) {
  return json_string(item.name).size() + 201;
}

}  // namespace

SafetensorsParts::SafetensorsParts(SafetensorsFile file) : name_(file.name()) {
  files_.push_back(std::move(file));
}

SafetensorsParts SafetensorsParts::open(const fs::path& folder, const std::string& name) {
  const fs::path whole = whole_path(folder, name), index = folder / index_name(name);
  if (fs::exists(whole) || !fs::exists(index)) {
    return SafetensorsParts(SafetensorsFile::open(whole));
  }
  SafetensorsParts parts;
  parts.name_ = index.string();
  parts.open_parts(folder);
  return parts;
}

void SafetensorsParts::open_parts(const fs::path& folder) {
  const MappedFile file(name_);
  LONGHAND_CHECK(file.bytes().size() <= SafetensorsIndex::max_bytes, name_, ": expected at most ",
                 SafetensorsIndex::max_bytes, " bytes, got ", file.bytes().size());
  const SafetensorsIndex index = SafetensorsIndex::parse(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, name_);
  for (const std::string& part : index.files) {
    files_.push_back(SafetensorsFile::open(folder / part));
  }
  for (const auto& [tensor, part] : index.tensors) {
    const SafetensorsFile& there = files_[part];
    LONGHAND_CHECK(there.find(tensor), there.name(), ": has no tensor ", quote(tensor), ", which ",
                   name_, " assigns to this file");
    part_[tensor] = part;
  }
  total_ = index.total;
}

SafetensorsParts::Location SafetensorsParts::find(std::string_view tensor) const {
  std::size_t file = 0;
  if (!part_.empty()) {
    const auto found = part_.find(tensor);
    if (found == part_.end()) return {};
    file = found->second;
  }
  const SafetensorsEntry* const entry = files_[file].find(tensor);
  return entry ? Location{entry, &files_[file]} : Location{};
}

const SafetensorsEntry& SafetensorsParts::at(std::string_view tensor, DType dtype,
                                             const Shape& shape) const {
  const Location place = find(tensor);
  LONGHAND_CHECK(place.entry, name_, ": has no tensor ", quote(tensor));
  return place.file->at(tensor, dtype, shape);
}

void SafetensorsParts::check_exact() const {
  // part_ is empty if there is a single file. Its tensors were already checked against its header.
  if (part_.empty()) return;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    for (const SafetensorsEntry& entry : files_[i].entries()) {
      const auto place = part_.find(entry.name);
      LONGHAND_CHECK(place != part_.end() && place->second == i, files_[i].name(), ": tensor ",
                     quote(entry.name), ": expected no such tensor, because ", name_,
                     place == part_.end() ? " does not list it" : " assigns it to another file");
      bytes += static_cast<std::int64_t>(entry.bytes.size());
    }
  }
  LONGHAND_CHECK(total_ == bytes, name_, ": metadata total_size: expected ", bytes,
                 ", the number of bytes of all tensors, got ",
                 total_ ? std::to_string(*total_) : "none");
}

void SafetensorsParts::check_sums() const {
  for (const SafetensorsFile& file : files_) file.check_sums();
}

bool SafetensorsParts::has_checksums() const {
  return std::ranges::all_of(files_, &SafetensorsFile::has_checksums);
}

std::vector<std::vector<SafetensorsItem>> cut_into_parts(
    const std::string& name, std::span<const SafetensorsItem> items,
    const std::map<std::string, std::string, std::less<>>& metadata, std::uint64_t most) {
  std::vector<std::vector<SafetensorsItem>> parts(1);
  if (most == 0) {
    parts[0].assign(items.begin(), items.end());
    return parts;
  }
  const std::uint64_t bare = header_bytes(metadata);
  std::uint64_t size = bare;
  for (const SafetensorsItem& item : items) {
    const std::uint64_t bytes = data_bytes(item) + header_bytes(item);
    LONGHAND_CHECK(bare + bytes <= most, name, ".safetensors: tensor ", quote(item.name),
                   ": expected at most ", most, " bytes including the header of the file, got ",
                   bare + bytes);
    if (size + bytes > most) {
      parts.emplace_back();
      size = bare;
    }
    parts.back().push_back(item);
    size += bytes;
  }
  LONGHAND_CHECK(parts.size() <= SafetensorsIndex::max_files, name,
                 ".safetensors: expected at most ", SafetensorsIndex::max_files,
                 " files of at most ", most, " bytes, got ", parts.size(), " files");
  return parts;
}

void write_safetensors_parts(const Folder& folder, const std::string& name,
                             std::span<const SafetensorsItem> items,
                             const std::map<std::string, std::string, std::less<>>& metadata,
                             std::uint64_t most) {
  const auto parts = cut_into_parts(name, items, metadata, most);
  if (parts.size() == 1) return write_safetensors(folder, name + ".safetensors", items, metadata);
  write_index(folder, name, write_parts(folder, name, parts, metadata, 0, parts.size()));
}

std::vector<IndexedTensor> write_parts(
    const Folder& folder, const std::string& name,
    std::span<const std::vector<SafetensorsItem>> some,
    const std::map<std::string, std::string, std::less<>>& metadata, std::size_t first,
    std::size_t parts) {
  std::vector<IndexedTensor> written;
  for (std::size_t i = 0; i < some.size(); ++i) {
    const std::string file = part_name(name, first + i, parts);
    write_safetensors(folder, file, some[i], metadata);
    for (const SafetensorsItem& item : some[i]) {
      written.push_back({item.name, file, data_bytes(item)});
    }
  }
  return written;
}

void write_index(const Folder& folder, const std::string& name,
                 std::span<const IndexedTensor> tensors) {
  std::uint64_t total = 0;
  Json::Object map;
  for (const IndexedTensor& tensor : tensors) {
    map.emplace_back(tensor.name, tensor.file);
    total += tensor.bytes;
  }
  Json index;
  index["metadata"]["total_size"] = total;
  index["weight_map"] = Json(std::move(map));
  write_atomically(folder, index_name(name), index.dump(2) + "\n");
}

void write_safetensors_parts(const fs::path& folder, const std::string& name,
                             std::span<const SafetensorsItem> items,
                             const std::map<std::string, std::string, std::less<>>& metadata,
                             std::uint64_t most) {
  write_safetensors_parts(Folder(folder), name, items, metadata, most);
}

}  // namespace longhand
