#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"

namespace longhand {

/// A tensor as the header of a safetensors file describes it: well-formed, but not yet held
/// against the file's size.
struct SafetensorsRecord {
  std::string name;
  std::string type;
  Shape shape;
  std::uint64_t begin = 0;  // bytes from the end of the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsRecord> records;  // their names not yet compared
  std::map<std::string, std::string, std::less<>> metadata;
};

/// Reads the JSON of a header. Refused in one line that begins with `file`: anything that is not
/// the format's own structure, a field or metadata key given twice, a missing field, more or longer
/// names than SafetensorsFile's limits.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& file);

}  // namespace longhand
