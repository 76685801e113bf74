#include "core/safetensors_index.h"

#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"

namespace longhand {

SafetensorsIndex SafetensorsIndex::parse(std::string_view text, const std::string& source) {
  const std::optional<Json> json = Json::parse(text);
  LONGHAND_CHECK(json && json->is_object(), source, ": expected a JSON object, got something else");
  const Json* const map = json->find("weight_map");
  LONGHAND_CHECK(map && map->is_object() && !map->empty(), source,
                 ": expected a weight_map, an object that maps tensor names to files");
  SafetensorsIndex index;
  std::map<std::string, std::size_t> places;
  for (const auto& [tensor, file] : map->members()) {
    const std::string name = file.is_string() ? file.string() : "";
    LONGHAND_CHECK(!name.empty() && name.find('\0') == std::string::npos &&
                       std::filesystem::path(name).filename() == name && name[0] != '.',
                   source, ": tensor ", quote(tensor),
                   ": expected the name of a file in the same folder, got ", quote(file.dump()));
    const auto [place, fresh] = places.emplace(name, index.files.size());
    if (fresh) {
      LONGHAND_CHECK(index.files.size() < max_files, source, ": expected at most ", max_files,
                     " files, got more");
      index.files.push_back(name);
    }
    index.tensors.emplace_back(tensor, place->second);
  }
  const Json* const metadata = json->find("metadata");
  const bool described = metadata && metadata->is_object();
  const Json* const total = described ? metadata->find("total_size") : nullptr;
  if (total && total->is_integer() && total->number() >= 0 && total->number() < 0x1p63) {
    index.total = total->integer();
  }
  return index;
}

}  // namespace longhand
