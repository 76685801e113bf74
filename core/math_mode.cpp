#include "core/math_mode.h"

#include <array>

namespace longhand {
namespace {

constexpr std::array<std::string_view, 4> math_names{"exact", "fast", "bf16", "portable"};

}  // namespace

std::string_view name_of(Math math) { return math_names[static_cast<std::size_t>(math)]; }

std::optional<Math> math_from_name(std::string_view name) {
  for (std::size_t i = 0; i < math_names.size(); ++i) {
    if (math_names[i] == name) return static_cast<Math>(i);
  }
  return std::nullopt;
}

}  // namespace longhand
