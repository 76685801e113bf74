#pragma once

#include <optional>
#include <string_view>

namespace longhand {

/// The precision of products (docs/design.md). Sums are always f32, or f64 for f64 operands.
enum class Math {
  exact,  // f32 products
  // Where it is faster on the hardware, keeps only about 16 bits of each operand's significand (on
  // the CPU) or 11 bits (TF32, with CUDA). Otherwise the same as the mode `exact`.
  fast,
  bf16,  // operands rounded to bf16
  // f32 products. All operations have the same bits on every processor (docs/design.md). Only the
  // CPU backend supports this mode.
  portable,
};
std::string_view name_of(Math math);
std::optional<Math> math_from_name(std::string_view name);

}  // namespace longhand
