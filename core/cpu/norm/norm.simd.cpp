#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/cpu/norm/kernels.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

float one_over_root(float mean_square) { return 1.0f / __builtin_sqrtf(mean_square); }

/// Normalizes rows. Makes three passes over each row, or two if the mean is not subtracted
/// (RmsNorm). The first pass reads the row from memory. The other passes read it from the cache.
template <bool centered, class T>
void forward_rows(const typename NormKernels<T>::Forward& r, std::int64_t begin, std::int64_t end,
                  std::int64_t n) {
  const Output<T> y(r.y, r.how);
  const float count = static_cast<float>(n);
  for (std::int64_t i = begin; i < end; ++i) {
    const T* x = r.x + i * n;
    float mean = 0;
    if constexpr (centered) {
      mean = sum(sum_over(n, [&](auto j, auto v) { return v.load(x + j); })) / count;
      r.mean[i] = mean;
    }
    const Vec center(mean);
    const Sums squares = sum_over(n, [&](auto j, auto v) {
      const Vec d = v.keep(v.load(x + j) - center);
      return d * d;
    });
    const float rstd = one_over_root(sum(squares) / count + r.epsilon);
    r.rstd[i] = rstd;
    const Vec factor(rstd), offset(r.offset);
    for_each_vector(n, [&](auto j, auto v) {
      const Vec h = (v.load(x + j) - center) * factor;
      const Vec gain = offset + v.load(r.gain + j);
      y.put(i * n + j, v, r.bias ? fma(h, gain, v.load(r.bias + j)) : h * gain);
    });
  }
}

/// Computes gradients in two passes over each row. Let h be the normalized row, and g the gradient
/// of h. The first pass sums g h over the row, and also g if the mean is subtracted. It also adds
/// the row's terms to the gradients of gain and bias. The second pass computes dx from the sums.
template <bool centered, class T>
void backward_rows(const typename NormKernels<T>::Backward& r, std::int64_t begin, std::int64_t end,
                   std::int64_t n, float* dgain, float* dbias) {
  const Output<T> dx(r.dx, r.how);
  const Vec offset(r.offset);
  for (std::int64_t i = begin; i < end; ++i) {
    const T *x = r.x + i * n, *dy = r.dy + i * n;
    const Vec center(centered ? r.mean[i] : 0.0f), factor(r.rstd[i]);
    Sums sum_g, sum_gh;
    for_each_part(n, [&](auto j, auto v, int p) {
      const Vec h = v.keep((v.load(x + j) - center) * factor), d = v.load(dy + j);
      const Vec g = d * v.keep(offset + v.load(r.gain + j));
      if constexpr (centered) sum_g.part[p] += g;
      sum_gh.part[p] = fma(g, h, sum_gh.part[p]);
      if (dgain) v.store(dgain + j, fma(d, h, v.load(dgain + j)));
      if (dbias) v.store(dbias + j, d + v.load(dbias + j));
    });
    if (!r.dx) continue;
    const float count = static_cast<float>(n);
    const Vec mean_g(centered ? sum(sum_g) / count : 0.0f), mean_gh(sum(sum_gh) / count);
    for_each_vector(n, [&](auto j, auto v) {
      const Vec h = (v.load(x + j) - center) * factor;
      const Vec g = v.load(dy + j) * (offset + v.load(r.gain + j));
      dx.put(i * n + j, v, factor * (g - mean_g - h * mean_gh));
    });
  }
}

template <class T>
void forward(const typename NormKernels<T>::Forward& rows, std::int64_t begin, std::int64_t end,
             std::int64_t n) {
  rows.mean ? forward_rows<true, T>(rows, begin, end, n)
            : forward_rows<false, T>(rows, begin, end, n);
}

template <class T>
void backward(const typename NormKernels<T>::Backward& rows, std::int64_t begin, std::int64_t end,
              std::int64_t n, float* dgain, float* dbias) {
  rows.mean ? backward_rows<true, T>(rows, begin, end, n, dgain, dbias)
            : backward_rows<false, T>(rows, begin, end, n, dgain, dbias);
}

constexpr NormKernels<float> f32_table{.forward = forward<float>, .backward = backward<float>};
constexpr NormKernels<bf16> bf16_table{.forward = forward<bf16>, .backward = backward<bf16>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const NormKernels<float>& kernels<NormKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::f32_table;
}
template <>
const NormKernels<bf16>& kernels<NormKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::bf16_table;
}

}  // namespace longhand::cpu
