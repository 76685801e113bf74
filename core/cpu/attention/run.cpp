#include <cstring>

#include "core/contract/elementwise.h"
#include "core/cpu/attention/passes.h"

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

/// Calls the function run() that the rule's source file, for example tra.cpp, defines. Without that
/// file, linking fails.
template <class Op, class Rule>
void dispatch(CpuBackend& backend, const Op& op, const Rule& rule) {
  void run(CpuBackend&, const Op&, const Rule&);
  run(backend, op, rule);
}

template <class Op>
void run_rule(CpuBackend& backend, const Op& op) {
  std::visit([&](const auto& rule) { dispatch(backend, op, rule); }, op.rule);
}

void run(CpuBackend& backend, const Attention& op) { run_rule(backend, op); }
void run(CpuBackend& backend, const AttentionBackward& op) { run_rule(backend, op); }
void run(CpuBackend& backend, const AttentionWeights& op) { run_rule(backend, op); }

// FindBadScore reads every score only once, so the loops of the reference backend are fast enough.
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
