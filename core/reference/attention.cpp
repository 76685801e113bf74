#include "core/contract/attention.h"

#include <cmath>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"

namespace longhand::reference {

/// Calls run() for an attention rule, such as softmax or entmax. The rule's own source file defines
/// this function. Without that file, linking fails.
template <class Op, class Rule>
void dispatch(ReferenceBackend& backend, const Op& op, const Rule& rule) {
  void run(ReferenceBackend&, const Op&, const Rule&);
  run(backend, op, rule);
}

template <class Op>
void run_rule(ReferenceBackend& backend, const Op& op) {
  std::visit([&](const auto& rule) { dispatch(backend, op, rule); }, op.rule);
}

void run(ReferenceBackend& backend, const Attention& op) { run_rule(backend, op); }
void run(ReferenceBackend& backend, const AttentionBackward& op) { run_rule(backend, op); }
void run(ReferenceBackend& backend, const AttentionWeights& op) { run_rule(backend, op); }

void run(ReferenceBackend&, const FindBadScore& op) {
  const ScoreRows scores(op.scores, op.own_key);
  auto* found = op.found.data<std::int32_t>();
  const std::vector<Sequence> all = sequences(op.scores.queries, op.scores.keys);
  for (std::size_t number = 0; number < all.size(); ++number) {
    const Sequence& s = all[number];
    for (std::int64_t t = 0; t < s.queries; ++t) {
      for (std::int64_t j = scores.first(s, t); j < scores.end(s, t); ++j) {
        for (std::int64_t h = 0; h < op.scores.q.heads; ++h) {
          if (std::isfinite(scores(s, t, h, j))) continue;
          found[0] = static_cast<std::int32_t>(number);
          found[1] = static_cast<std::int32_t>(op.scores.causal ? s.position(t) : t);
          found[2] = static_cast<std::int32_t>(j);
          found[3] = static_cast<std::int32_t>(h);
          return;
        }
      }
    }
  }
  for (int i = 0; i < 4; ++i) found[i] = -1;
}

}  // namespace longhand::reference
