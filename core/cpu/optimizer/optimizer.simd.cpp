#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/cpu/optimizer/kernels.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

template <class M, class V>
void step(const AdamFactors& f, float* w, const float* gradient, M* m, V* v, std::int64_t n) {
  const Vec factor(f.gradient), coupled(f.coupled), kept(f.kept), rate(f.rate);
  const Vec beta1(f.beta1), rest1(f.rest1), beta2(f.beta2), rest2(f.rest2);
  const Vec scale_v(f.scale_v), epsilon(f.epsilon);
  for_each_vector(n, [&](auto i, auto part) {
    const Vec old = part.load(w + i);
    const Vec g = fma(factor, part.load(gradient + i), coupled * old);
    const Vec new_m = fma(beta1, part.load(m + i), rest1 * g);
    const Vec new_v = fma(beta2, part.load(v + i), rest2 * g * g);
    part.store(m + i, new_m);
    part.store(v + i, new_v);
    part.store(w + i, kept * old - rate * new_m / (sqrt(new_v * scale_v) + epsilon));
  });
}

void sgd_step(const SgdFactors& f, float* w, const float* gradient, float* velocity,
              std::int64_t n) {
  const Vec factor(f.gradient), decay(f.decay), momentum(f.momentum), rate(f.rate);
  for_each_vector(n, [&](auto i, auto part) {
    const Vec old = part.load(w + i);
    const Vec g = fma(factor, part.load(gradient + i), decay * old);
    const Vec u = fma(momentum, part.load(velocity + i), g);
    part.store(velocity + i, u);
    part.store(w + i, old - rate * u);
  });
}

constexpr SgdKernels sgd_table{.step = sgd_step};

template <class M, class V>
constexpr AdamKernels<M, V> table{.step = step<M, V>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const AdamKernels<float, float>& kernels<AdamKernels<float, float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float, float>;
}
template <>
const AdamKernels<float, bf16>& kernels<AdamKernels<float, bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float, bf16>;
}
template <>
const AdamKernels<bf16, float>& kernels<AdamKernels<bf16, float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16, float>;
}
template <>
const AdamKernels<bf16, bf16>& kernels<AdamKernels<bf16, bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16, bf16>;
}
template <>
const SgdKernels& kernels<SgdKernels, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::sgd_table;
}

}  // namespace longhand::cpu
