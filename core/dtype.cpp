#include "core/dtype.h"

#include <array>

namespace longhand {
namespace {

struct Row {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<Row, 5> rows{{{"f64", 8}, {"f32", 4}, {"bf16", 2}, {"i32", 4}, {"u8", 1}}};

}  // namespace

std::size_t size_of(DType type) { return rows[static_cast<std::size_t>(type)].size; }

std::string_view name_of(DType type) { return rows[static_cast<std::size_t>(type)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, DType type) { return out << name_of(type); }

}  // namespace longhand
