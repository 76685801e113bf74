#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/cpu/math.h"
#include "core/cpu/softmax/kernels.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

/// Computes the softmax of the first `visible` of the n entries of a row. The results of all other
/// entries are 0. The exponentials are computed twice, once for the sum and once for the result.
/// This is faster than storing and loading them.
template <class T>
[[gnu::always_inline]] inline void forward_row(const T* x, const Output<T>& out, std::int64_t at,
                                               std::int64_t visible, std::int64_t n) {
  const float largest = largest_of(x, visible);
  const bool nothing = largest == -__builtin_inff();  // true if all entries are -infinity or NaN
  const Vec shift(nothing ? 0.0f : largest);
  const float total =
      sum(sum_over(visible, [&](auto j, auto v) { return v.keep(exp(v.load(x + j) - shift)); }));
  // If no entry is above -infinity, the total is 0 or NaN. The total itself is then the factor, so
  // the results are 0 or NaN.
  const Vec factor(nothing ? total : 1.0f / total);
  for_each_vector(visible,
                  [&](auto j, auto v) { out.put(at + j, v, exp(v.load(x + j) - shift) * factor); });
  for_each_vector(n - visible, [&](auto j, auto v) { out.put(at + visible + j, v, Vec(0.0)); });
}

template <class T>
void forward(const T* x, T* y, Store how, std::int64_t begin, std::int64_t end, std::int64_t n,
             std::int64_t t) {
  const Output<T> out(y, how);
  for (std::int64_t i = begin; i < end; ++i) {
    std::int64_t visible = n;
    if (t > 0) visible = i % t + 1 + (n - t);
    visible = visible < 0 ? 0 : visible > n ? n : visible;
    forward_row(x + i * n, out, i * n, visible, n);
  }
}

template <class T>
void backward(const T* y, const T* dy, T* dx, Store how, std::int64_t rows, std::int64_t n) {
  const Output<T> out(dx, how);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t at = i * n;
    const Vec total(
        sum(sum_over(n, [&](auto j, auto v) { return v.load(y + at + j) * v.load(dy + at + j); })));
    for_each_vector(n, [&](auto j, auto v) {
      out.put(at + j, v, v.load(y + at + j) * (v.load(dy + at + j) - total));
    });
  }
}

template <class T>
constexpr SoftmaxKernels<T> table{.forward = forward<T>, .backward = backward<T>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const SoftmaxKernels<float>& kernels<SoftmaxKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const SoftmaxKernels<bf16>& kernels<SoftmaxKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

}  // namespace longhand::cpu
