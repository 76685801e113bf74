#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/cpu/loss/kernels.h"
#include "core/cpu/math.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

template <class T>
float entry(const T* x) {
  return load_first(x, 1).v[0];
}

/// True if x[t] equals `largest`, the maximum of the row x, and no earlier entry of the row does.
template <class T>
bool is_first_largest(const T* x, std::int64_t t, float largest) {
  if (entry(x + t) != largest) return false;
  Mask earlier = Vec(0.0) != Vec(0.0);
  for_each_vector(t, [&](auto c, auto v) {
    earlier = earlier | (v.load_or(x + c, __builtin_nanf("")) == Vec(largest));
  });
  return !any(earlier);
}

template <class T>
LossSums cross_entropy(const T* logits, const std::int32_t* targets, const float* weights,
                       float* log_sum, std::int64_t count, std::int64_t classes) {
  LossSums sums;
  for (std::int64_t i = 0; i < count; ++i) {
    const T* x = logits + i * classes;
    const float largest = largest_of(x, classes);
    const Vec top(largest);
    const float total =
        sum(sum_over(classes, [&](auto c, auto v) { return v.keep(exp(v.load(x + c) - top)); }));
    const float log_total = log(Vec(total)).v[0];
    log_sum[i] = largest + log_total;
    const std::int64_t t = targets[i];
    if (t < 0) continue;
    const double w = weights ? weights[i] : 1.0;
    sums.weight += w;
    // With this order of operations, a small loss keeps its precision even if log_sum is large.
    sums.loss +=
        w * (static_cast<double>(log_total) + (static_cast<double>(largest) - entry(x + t)));
    if (is_first_largest(x, t, largest)) sums.hits += w;
  }
  return sums;
}

template <class T>
void cross_entropy_backward(const T* logits, const std::int32_t* targets, const float* weights,
                            const float* log_sum, double factor, T* dlogits, Store how,
                            std::int64_t count, std::int64_t classes) {
  const Output<T> out(dlogits, how);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = i * classes, t = targets[i];
    if (t < 0) {
      for_each_vector(classes, [&](auto c, auto v) { out.put(at + c, v, Vec(0.0)); });
      continue;
    }
    const Vec scale(static_cast<float>(weights ? factor * weights[i] : factor));
    const Vec shift(log_sum[i]);
    const auto gradient = [&](Vec x, std::int64_t c) {
      const IntVec hit(static_cast<std::int32_t>(t - c));
      const Vec one = select(lane_indices() == hit, Vec(1.0), Vec(0.0));
      return scale * (exp(x - shift) - one);
    };
    for_each_vector(
        classes, [&](auto c, auto v) { out.put(at + c, v, gradient(v.load(logits + at + c), c)); });
  }
}

template <class T>
LossSums binary(const T* logits, const float* targets, const float* weights, std::int64_t count) {
  const auto weight_of = [&](std::int64_t i, auto v) {
    return v.keep(weights ? v.load(weights + i) : Vec(1.0));
  };
  const Sums weight = sum_over(count, weight_of);
  const Sums loss = sum_over(count, [&](auto i, auto v) {
    const Vec x = v.load(logits + i), t = v.load(targets + i);
    return weight_of(i, v) * (fma(-x, t, max(x, Vec(0.0))) + log1p(exp(-abs(x))));
  });
  return {.weight = sum(weight), .loss = sum(loss)};
}

template <class T>
void binary_backward(const T* logits, const float* targets, const float* weights, double factor,
                     T* dlogits, Store how, std::int64_t count) {
  const Output<T> out(dlogits, how);
  const Vec scale(factor);
  for_each_vector(count, [&](auto i, auto v) {
    const Vec d = sigmoid(v.load(logits + i)) - v.load(targets + i);
    out.put(i, v, weights ? scale * v.load(weights + i) * d : scale * d);
  });
}

template <class T>
constexpr LossKernels<T> table{.cross_entropy = cross_entropy<T>,
                               .cross_entropy_backward = cross_entropy_backward<T>,
                               .binary = binary<T>,
                               .binary_backward = binary_backward<T>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const LossKernels<float>& kernels<LossKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const LossKernels<bf16>& kernels<LossKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

}  // namespace longhand::cpu
