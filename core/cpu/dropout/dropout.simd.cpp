#include "core/cpu/dropout/kernels.h"
#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/philox.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

// Number of blocks of four random words that the Philox generator computes together.
constexpr std::int64_t blocks = 64;

/// Draws the dropout factors of `4 * blocks` consecutive entries. A factor is 0 for a dropped entry
/// and otherwise stream.kept. factors[i] is the factor of entry 4 * first + i.
void draw_factors(const DropoutStream& stream, std::uint32_t first, float* factors) {
  std::uint32_t c0[blocks], c1[blocks], c2[blocks], c3[blocks];
  for (std::uint32_t i = 0; i < blocks; ++i) {
    c0[i] = first + i;
    c1[i] = stream.counter[0];
    c2[i] = stream.counter[1];
    c3[i] = stream.counter[2];
  }
  std::uint32_t k0 = stream.key[0], k1 = stream.key[1];
  for (int round = 0; round < philox_rounds; ++round) {
    for (std::uint32_t i = 0; i < blocks; ++i) philox_round(c0[i], c1[i], c2[i], c3[i], k0, k1);
    raise_philox_key(k0, k1);
  }
  const auto factor = [&](std::uint32_t word) {
    return word < stream.threshold ? 0.0f : stream.kept;
  };
  for (std::uint32_t i = 0; i < blocks; ++i) {
    factors[4 * i] = factor(c0[i]);
    factors[4 * i + 1] = factor(c1[i]);
    factors[4 * i + 2] = factor(c2[i]);
    factors[4 * i + 3] = factor(c3[i]);
  }
}

template <class T>
void dropout(const DropoutStream& stream, const T* x, T* y, Store how, std::int64_t begin,
             std::int64_t end) {
  const Output<T> out(y, how);
  float factors[4 * blocks];
  for (std::int64_t at = begin; at < end; at += 4 * blocks) {
    draw_factors(stream, static_cast<std::uint32_t>(at / 4), factors);
    const std::int64_t rest = end - at;
    for_each_vector(rest < 4 * blocks ? rest : 4 * blocks, [&](auto i, auto v) {
      const Vec factor = v.load(factors + i), zero(0.0);
      // Dropped entries are set to 0 by a selection. A product with 0 would give NaN for infinite
      // entries.
      out.put(at + i, v, select(factor == zero, zero, factor * v.load(x + at + i)));
    });
  }
}

template <class T>
constexpr DropoutKernels<T> table{.dropout = dropout<T>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const DropoutKernels<float>& kernels<DropoutKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const DropoutKernels<bf16>& kernels<DropoutKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

}  // namespace longhand::cpu
