#pragma once

#include <optional>
#include <string_view>

namespace longhand {

/// The precision of products (docs/design.md). Sums are always f32, or f64 for f64 operands.
enum class Math {
  exact,  // f32 products
  fast,   // about 16 bits of each operand if the hardware is faster with them; otherwise exact
  bf16,   // operands rounded to bf16
};
std::string_view name_of(Math math);
std::optional<Math> math_from_name(std::string_view name);

}  // namespace longhand
