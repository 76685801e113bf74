#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/cpu/reduce/kernels.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

/// Adds four rows of x to y at a time, so that y is read and written only once per four rows.
template <class T>
void add_rows(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, float* y) {
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride) {
    for_each_vector(columns, [&](auto j, auto v) {
      const Vec a = v.load(x + j), b = v.load(x + stride + j);
      const Vec c = v.load(x + 2 * stride + j), d = v.load(x + 3 * stride + j);
      v.store(y + j, v.load(y + j) + ((a + b) + (c + d)));
    });
  }
  for (; i < rows; ++i, x += stride) {
    for_each_vector(columns,
                    [&](auto j, auto v) { v.store(y + j, v.load(y + j) + v.load(x + j)); });
  }
}

template <class T>
bool has_nan(const T* x, std::int64_t n) {
  Mask nan = Vec(0.0) != Vec(0.0);
  for_each_vector(n, [&](auto j, auto v) {
    const Vec a = v.load(x + j);
    nan = nan | (a != a);
  });
  return any(nan);
}

template <class T>
float smallest_of(const T* x, std::int64_t n) {
  Vec a(__builtin_inff());
  for_each_vector(n, [&](auto j, auto v) { a = min(v.load_or(x + j, __builtin_inff()), a); });
  return -max(-a);
}

template <class T>
float reduce(Reduction reduction, const T* x, std::int64_t n) {
  switch (reduction) {
    case Reduction::largest:
      return has_nan(x, n) ? __builtin_nanf("") : largest_of(x, n);
    case Reduction::smallest:
      return has_nan(x, n) ? __builtin_nanf("") : smallest_of(x, n);
    case Reduction::square_sum:
      return sum(sum_over(n, [&](auto j, auto v) {
        const Vec a = v.load(x + j);
        return a * a;
      }));
    case Reduction::nonfinite:
      return sum(sum_over(n, [&](auto j, auto v) {
        return select(abs(v.load(x + j)) < Vec(__builtin_inff()), Vec(0.0), Vec(1.0));
      }));
    default:
      return sum(sum_over(n, [&](auto j, auto v) { return v.load(x + j); }));
  }
}

void put(const float* x, float alpha, float* y, Store how, std::int64_t n) {
  const Output<float> out(y, how);
  for_each_vector(n, [&](auto j, auto v) { out.put(j, v, Vec(alpha) * v.load(x + j)); });
}

template <class T>
constexpr ReduceKernels<T> table{.add_rows = add_rows<T>, .reduce = reduce<T>, .put = put};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const ReduceKernels<float>& kernels<ReduceKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const ReduceKernels<bf16>& kernels<ReduceKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

}  // namespace longhand::cpu
