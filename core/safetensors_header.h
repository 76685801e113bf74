#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"

namespace longhand {

/// A tensor as described in a safetensors header. The description is well-formed. It has not yet
/// been compared with the file's size.
struct SafetensorsRecord {
  std::string name;
  std::string type;
  Shape shape;
  std::uint64_t begin = 0;  // byte offset from the end of the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsRecord> records;  // names may occur twice; this is checked later
  std::map<std::string, std::string, std::less<>> metadata;
};

/// Parses the JSON of a header. Throws a one-line Error that begins with `file` if the JSON does
/// not have the structure of a header (core/safetensors.h), if a field is missing, if a field or
/// metadata key occurs twice, or if there are more names or longer names than SafetensorsFile
/// allows.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& file);

}  // namespace longhand
