#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/cpu/triangle/kernels.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

template <class T>
void row(const T* x, float alpha, T* y, Store how, std::int64_t begin, std::int64_t end,
         std::int64_t n) {
  const Output<T> out(y, how);
  const Vec factor(alpha);
  for_each_vector(begin, [&](auto j, auto v) { out.put(j, v, Vec(0.0)); });
  for_each_vector(end - begin,
                  [&](auto j, auto v) { out.put(begin + j, v, factor * v.load(x + begin + j)); });
  for_each_vector(n - end, [&](auto j, auto v) { out.put(end + j, v, Vec(0.0)); });
}

float value_of(float x) { return x; }
float value_of(bf16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}

/// Number of vectors in a row of a strip. A strip consists of adjacent right-hand sides of the
/// triangular system. Four rows that are being solved and one solved row of the strip fit into the
/// registers.
inline constexpr int strip = registers == 32 ? 4 : 2;
inline constexpr int block = 4;  // number of rows that are solved together

/// Solves the next `rows` rows of a triangular system, after `first` rows have been solved.
/// Subtracts the contributions of the solved rows, then solves the small triangle of the new rows.
/// index(s) is the row that is solved in step s.
template <int rows, class OpA, class Index>
void solve_block(float* y, std::int64_t first, bool unit, const OpA& op_a, const Index& index) {
  Vec rest[rows][strip];
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k < strip; ++k) rest[r][k] = load(y + index(first + r) * panel + k * lanes);
  }
  for (std::int64_t at = 0; at < first; ++at) {
    const std::int64_t j = index(at);
    for (int r = 0; r < rows; ++r) {
      const Vec factor(-op_a(index(first + r), j));
      for (int k = 0; k < strip; ++k) {
        rest[r][k] = fma(factor, load(y + j * panel + k * lanes), rest[r][k]);
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    const std::int64_t i = index(first + r);
    for (int q = 0; q < r; ++q) {
      const Vec factor(-op_a(i, index(first + q)));
      for (int k = 0; k < strip; ++k) rest[r][k] = fma(factor, rest[q][k], rest[r][k]);
    }
    for (int k = 0; k < strip; ++k) {
      if (!unit) rest[r][k] = rest[r][k] / Vec(op_a(i, i));
      store(y + i * panel + k * lanes, rest[r][k]);
    }
  }
}

/// Solves a triangular system in f32 in scratch memory, and then converts the solution to the type
/// of y.
template <class T>
void solve(const typename TriangleKernels<T>::Solve& s) {
  const auto op_a = [&](std::int64_t i, std::int64_t j) {
    return value_of(s.a[i * s.row_step + j * s.column_step]);
  };
  const auto index = [&](std::int64_t at) { return s.forward ? at : s.n - 1 - at; };
  for (std::int64_t i = 0; i < s.n; ++i) {
    float* to = s.scratch + i * panel;
    for_each_vector(s.columns, [&](auto c, auto v) { store(to + c, v.load(s.b + i * s.m + c)); });
  }
  for (std::int64_t c = 0; c < s.columns; c += strip * lanes) {
    float* y = s.scratch + c;
    std::int64_t first = 0;
    for (; first + block <= s.n; first += block) solve_block<block>(y, first, s.unit, op_a, index);
    for (; first < s.n; ++first) solve_block<1>(y, first, s.unit, op_a, index);
  }
  for (std::int64_t i = 0; i < s.n; ++i) {
    const float* from = s.scratch + i * panel;
    for_each_vector(s.columns, [&](auto c, auto v) { v.store(s.y + i * s.m + c, load(from + c)); });
  }
}

template <class T>
constexpr TriangleKernels<T> table{.row = row<T>, .solve = solve<T>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const TriangleKernels<float>& kernels<TriangleKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const TriangleKernels<bf16>& kernels<TriangleKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

}  // namespace longhand::cpu
