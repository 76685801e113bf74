#include <cstring>

#include "core/contract/elementwise.h"
#include "core/cpu/attention/attention.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"

namespace longhand::cpu {
namespace {

/// y_i = x_i, converted to the type of y.
template <class To, class From>
void copy_entries(const From* x, To* y, std::int64_t count) {
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(To));
  } else {
    for (std::int64_t i = 0; i < count; ++i) y[i] = To(static_cast<float>(x[i]));
  }
}

/// Converts queries and keys to f32, because the reference loops read only f32.
Scores in_f32(Backend& backend, Scores scores) {
  for (Tensor* x : {&scores.q.data, &scores.k.data}) {
    if (x->dtype() == DType::f32) continue;
    const Tensor wide(backend, x->shape(), DType::f32);
    backend.run(Copy{.x = *x, .y = wide});
    *x = wide;
  }
  return scores;
}

}  // namespace

void run(CpuBackend& backend, const Attention& op) {
  attention({backend.threads(), backend.isa()}, backend.math(op.scores.math), op);
}

void run(CpuBackend& backend, const AttentionBackward& op) {
  attention({backend.threads(), backend.isa()}, backend.math(op.scores.math), op);
}

void run(CpuBackend& backend, const Chacal& op) {
  attention({backend.threads(), backend.isa()}, backend.math(op.scores.math), op);
}

void run(CpuBackend& backend, const ChacalBackward& op) {
  attention({backend.threads(), backend.isa()}, backend.math(op.scores.math), op);
}

void run(CpuBackend& backend, const DeltaFormer& op) {
  attention({backend.threads(), backend.isa()}, backend.math(op.math), op);
}

void run(CpuBackend& backend, const DeltaFormerBackward& op) {
  attention({backend.threads(), backend.isa()}, backend.math(op.math), op);
}

void run(CpuBackend& backend, const Fal& op) { attention({backend.threads(), backend.isa()}, op); }

void run(CpuBackend& backend, const FalBackward& op) {
  attention({backend.threads(), backend.isa()}, op);
}

// This operation reads every score once, so the reference loops are fast enough.
void run(CpuBackend& backend, const FindBadScore& op) {
  backend.plain().run(
      FindBadScore{.scores = in_f32(backend, op.scores), .own_key = op.own_key, .found = op.found});
}

void run(CpuBackend&, const Append& op) {
  const std::int64_t count = op.x.heads * op.x.width;
  visit_activation(op.x.data.dtype(), [&]<class From>(From) {
    visit_activation(op.y.data.dtype(), [&]<class To>(To) {
      for (std::int64_t s = 0; s < op.from.count(); ++s) {
        const SegmentRows at = segment_rows(op.from, op.to, s);
        for (std::int64_t t = 0; t < at.queries; ++t) {
          const From* x = rows_of<const From>(op.x, 0, at.query + t).at;
          To* y = rows_of<To>(op.y, 0, at.key + at.offset() + t).at;
          copy_entries(x, y, count);
        }
      }
    });
  });
}

}  // namespace longhand::cpu
