#include "tests/simd_probe.h"

#include "core/cpu/isa.h"
#include "core/cpu/math.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

template <class F, class X, class Y>
void map(const X* x, Y* y, std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(y + i, f(load(x + i)));
  const int rest = static_cast<int>(n - i);
  store_first(y + i, f(load_first(x + i, rest)), rest);
}

float sum_of(const float* x, std::int64_t n) {
  Vec total(0.0);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) total += load(x + i);
  return sum(total + load_first(x + i, static_cast<int>(n - i)));
}

float largest_of(const float* x, std::int64_t n) {
  Vec largest = load(x);
  for (std::int64_t i = lanes; i + lanes <= n; i += lanes) largest = max(largest, load(x + i));
  return max(max(largest, load(x + n - lanes)));
}

const SimdProbe table{
    .lanes = lanes,
    .fused_multiply_add = fused_multiply_add,
    .exp = [](const float* x, float* y,
              std::int64_t n) { map(x, y, n, [](Vec a) { return exp(a); }); },
    .log = [](const float* x, float* y,
              std::int64_t n) { map(x, y, n, [](Vec a) { return log(a); }); },
    .log1p = [](const float* x, float* y,
                std::int64_t n) { map(x, y, n, [](Vec a) { return log1p(a); }); },
    .tanh = [](const float* x, float* y,
               std::int64_t n) { map(x, y, n, [](Vec a) { return tanh(a); }); },
    .erf = [](const float* x, float* y,
              std::int64_t n) { map(x, y, n, [](Vec a) { return erf(a); }); },
    .sigmoid = [](const float* x, float* y,
                  std::int64_t n) { map(x, y, n, [](Vec a) { return sigmoid(a); }); },
    .sine =
        [](const float* x, float* y, std::int64_t n) {
          map(x, y, n, [](Vec a) {
            Vec sine, cosine;
            sine_cosine(a, sine, cosine);
            return sine;
          });
        },
    .cosine =
        [](const float* x, float* y, std::int64_t n) {
          map(x, y, n, [](Vec a) {
            Vec sine, cosine;
            sine_cosine(a, sine, cosine);
            return cosine;
          });
        },
    .sqrt = [](const float* x, float* y,
               std::int64_t n) { map(x, y, n, [](Vec a) { return sqrt(a); }); },
    .narrow = [](const float* x, bf16* y,
                 std::int64_t n) { map(x, y, n, [](Vec a) { return a; }); },
    .widen = [](const bf16* x, float* y, std::int64_t n) { map(x, y, n, [](Vec a) { return a; }); },
    .copy_words = [](const std::int32_t* x, float* y,
                     std::int64_t n) { map(x, y, n, [](IntVec a) { return from_bits(a); }); },
    .sum = sum_of,
    .largest = largest_of,
    .fma = [](float a, float b,
              float c) { return sum(select(first(1), fma(Vec(a), Vec(b), Vec(c)), Vec(0.0))); },
    .any_greater = [](const float* x, float bound) { return any(load(x) > Vec(bound)); },
    .greater = [](const float* a, const float* b, float* y) { store(y, max(load(a), load(b))); },
};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const SimdProbe& kernels<SimdProbe, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table;
}

}  // namespace longhand::cpu
