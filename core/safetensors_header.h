#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"

namespace longhand {

/// A tensor as described by a safetensors header: well-formed, but not yet compared with the file's
/// size.
struct SafetensorsRecord {
  std::string name;
  std::string type;
  Shape shape;
  std::uint64_t begin = 0;  // bytes from the end of the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsRecord> records;  // names are not yet compared
  std::map<std::string, std::string, std::less<>> metadata;
};

/// Parses the JSON of a header. Refuses in one line that begins with `file`: any other structure, a
/// field or metadata key that occurs twice, a missing field, more or longer names than
/// SafetensorsFile's limits.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& file);

}  // namespace longhand
