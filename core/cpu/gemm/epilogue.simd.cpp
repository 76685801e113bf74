#include "core/cpu/gemm/panels.h"
#include "core/cpu/math.h"
#include "core/formulas.h"

namespace longhand::cpu::LONGHAND_ISA {
namespace {

Vec load_some(const void* row, bool is_bf16, std::int64_t at, int n) {
  if (is_bf16) {
    const bf16* from = static_cast<const bf16*>(row) + at;
    return n == lanes ? load(from) : load_first(from, n);
  }
  const float* from = static_cast<const float*>(row) + at;
  return n == lanes ? load(from) : load_first(from, n);
}

void store_some(void* row, bool is_bf16, std::int64_t at, Vec value, int n) {
  if (is_bf16) {
    bf16* to = static_cast<bf16*>(row) + at;
    n == lanes ? store(to, value) : store_first(to, value, n);
    return;
  }
  float* to = static_cast<float*>(row) + at;
  n == lanes ? store(to, value) : store_first(to, value, n);
}

/// The address of row i of a matrix of f32 or bf16 with leading dimension `ld`. It is null if
/// `data` is null.
const void* row_of(const void* data, bool is_bf16, std::int64_t ld, std::int64_t i) {
  return data ? static_cast<const char*>(data) + i * ld * (is_bf16 ? 2 : 4) : nullptr;
}

template <class Formula>
void finish_as(const EpilogueBlock& e) {
  for (std::int64_t i = 0; i < e.rows; ++i) {
    const float* sums = e.sums + i * e.ld_sums;
    void* pre = const_cast<void*>(row_of(e.pre, e.pre_bf16, e.ld_pre, i));
    void* c = const_cast<void*>(row_of(e.c, e.c_bf16, e.ldc, i));
    const void* residual = row_of(e.residual, e.residual_bf16, e.ld_residual, i);
    const void* at = row_of(e.at, e.at_bf16, e.ld_at, i);
    for (std::int64_t j = 0; j < e.cols; j += lanes) {
      const int n = e.cols - j < lanes ? static_cast<int>(e.cols - j) : lanes;
      Vec z = load_some(sums, false, j, n);
      if (at) {
        z *= Formula::derivative(load_some(at, e.at_bf16, j, n));
      } else {
        if (e.bias) z += load_some(e.bias, false, j, n);
        if (pre) store_some(pre, e.pre_bf16, j, z, n);
        z = Formula::value(z);
        if (residual) z += load_some(residual, e.residual_bf16, j, n);
      }
      if (e.beta != 0) z = fma(Vec(e.beta), load_some(c, e.c_bf16, j, n), z);
      store_some(c, e.c_bf16, j, z, n);
    }
  }
}

}  // namespace

void finish(const EpilogueBlock& e) {
  with_formula(e.has_f ? e.f : Activation::identity,
               [&](auto formula) { finish_as<decltype(formula)>(e); });
}

void sum_parts(const float* parts, std::int64_t stride, std::int64_t count, float* out,
               std::int64_t length) {
  for (std::int64_t j = 0; j < length; j += lanes) {
    const int n = length - j < lanes ? static_cast<int>(length - j) : lanes;
    Vec total = load_some(parts, false, j, n);
    for (std::int64_t p = 1; p < count; ++p) total += load_some(parts + p * stride, false, j, n);
    store_some(out, false, j, total, n);
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA
