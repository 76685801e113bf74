#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

namespace longhand {

/// Element types. Only the reference backend supports f64.
enum class DType : std::uint8_t { f64, f32, bf16, i32, u8 };

std::size_t size_of(DType type);
std::string_view name_of(DType type);
std::optional<DType> dtype_from_name(std::string_view name);
std::ostream& operator<<(std::ostream& out, DType type);

inline bool is_float(DType type) { return type <= DType::bf16; }

/// A bfloat16 number, which is the upper half of a float: sign, 8 bits of exponent, and 7 stored
/// bits of significand. A float is rounded to the nearest bfloat16 number, ties to even. NaN
/// remains NaN.
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  constexpr explicit bf16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<std::uint16_t>((word >> 16) | 0x40u);  // sets the quiet bit of a NaN
    } else {
      bits = static_cast<std::uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
    }
  }
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// The DType of a C++ element type: dtype_of<float> == DType::f32.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "not an element type");
  return DType::f32;
}();
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<bf16> = DType::bf16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

/// Calls f(T{}), where T is the C++ type of `type`.
template <class F>
decltype(auto) visit_dtype(DType type, F&& f) {
  switch (type) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16{});
    case DType::i32:
      return f(std::int32_t{});
    default:
      return f(std::uint8_t{});
  }
}

}  // namespace longhand
