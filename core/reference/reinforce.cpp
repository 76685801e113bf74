#include "core/contract/reinforce.h"

#include <algorithm>
#include <cmath>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Reinforce& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v);
  const Rows log_denominator(op.log_denominator), amounts(op.amounts);
  const HeadResult y(HeadsTarget{op.y, true});
  const auto* const pairs = op.pairs.data<std::int32_t>();
  const double log_threshold = std::log(op.threshold);

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t n = 0; n < op.pairs.rows(); ++n) {
      const std::int64_t i = pairs[2 * n], j = pairs[2 * n + 1], t = i - s.query;
      if (t < 0 || t >= s.queries || j < scores.first(s, t) || j > s.position(t)) continue;
      for (std::int64_t h = 0; h < op.y.heads; ++h) {
        const double log_p = scores(s, t, h, j) - log_denominator(i, h);
        if (amounts(h) == 0 || !(std::min(log_p, 0.0) > log_threshold)) continue;
        for (std::int64_t c = 0; c < op.v.width; ++c) {
          y.put(i, h, c, amounts(h) * v(s.key + j, h / scores.group(), c));
        }
      }
    }
  }
}

}  // namespace longhand::reference
