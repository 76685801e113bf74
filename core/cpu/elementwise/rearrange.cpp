#include "core/contract/rearrange.h"

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/elementwise/kernels.h"

namespace longhand::cpu {
namespace {

/// Copies entry j * x_step of x to entry j * y_step of y, for j = 0, ..., n - 1. If `add` is true,
/// adds the entry of x to that of y instead.
template <class From, class To>
void move_line(const From* x, std::int64_t x_step, To* y, std::int64_t y_step, bool add,
               std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    const auto from = static_cast<float>(x[j * x_step]);
    To& to = y[j * y_step];
    to = To(add ? static_cast<float>(to) + from : from);
  }
}

}  // namespace

void run(CpuBackend& backend, const Rearrange& op) {
  if (!op.y) return;
  const auto w = walk(op.shape, {op.from, op.to});
  const std::int64_t x_step = w.inner_step[0], y_step = w.inner_step[1];
  const Store how{.add = op.y.add};
  const auto move = [&]<class From, class To>(void (*copy)(const From*, To*, Store, std::int64_t),
                                              void (*fill)(float, To*, Store, std::int64_t)) {
    const From* x = op.x.data<From>();
    To* y = op.y.tensor.data<To>();
    const auto part = [&](std::int64_t line, std::int64_t first, std::int64_t n) {
      const From* from = x + w.begin(line, 0) + first * x_step;
      To* to = y + w.begin(line, 1) + first * y_step;
      if (x_step == 1 && y_step == 1) return copy(from, to, how, n);
      if (x_step == 0 && y_step == 1) return fill(static_cast<float>(*from), to, how, n);
      move_line(from, x_step, to, y_step, how.add, n);
    };
    if (w.lines() == 1) {
      parallel_for(backend.threads(), w.inner, grain,
                   [&](std::int64_t begin, std::int64_t end) { part(0, begin, end - begin); });
    } else {
      parallel_for(backend.threads(), w.lines(), rows_per_chunk(w.inner),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t line = begin; line < end; ++line) part(line, 0, w.inner);
                   });
    }
  };
  visit_activation(op.y.tensor.dtype(), [&]<class To>(To) {
    const auto& k = kernels_for<ElementwiseKernels<To>>(backend.isa());
    if (op.x.dtype() == DType::bf16) return move(k.from_bf16, k.fill);
    move(k.from_f32, k.fill);
  });
}

}  // namespace longhand::cpu
