#include "core/contract/cumulate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Cumulate& op) {
  const Rows x(op.x), before(op.before);
  const Result after(op.after);
  std::vector<double> sums(static_cast<std::size_t>(op.x.size()), 0.0);
  const std::int64_t columns = op.x.columns();
  std::int64_t number = 0;
  for (const Sequence& s : sequences(op.segments, op.segments)) {
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = op.before ? before(number, c) : 0;
      for (std::int64_t t = 0; t < s.keys; ++t) {
        const std::int64_t row = s.key + (op.reverse ? s.keys - 1 - t : t);
        sums[row * columns + c] = sum += x(row, c);
      }
      after.put(number, c, sum);
    }
    ++number;
  }
  const Result y(op.y);
  for (std::int64_t i = 0; i < op.x.size(); ++i) y.put(i, sums[i]);
}

void run(ReferenceBackend&, const LogCounts& op) {
  const Result y(op.y);
  for (const Sequence& s : sequences(op.queries, op.keys)) {
    for (std::int64_t t = 0; t < s.queries; ++t) {
      const std::int64_t n = op.whole ? s.keys : s.position(t) + 1;
      const double log_n = std::log(static_cast<double>(std::max<std::int64_t>(2, n)));
      for (std::int64_t c = 0; c < op.y.columns(); ++c) y.put(s.query + t, c, log_n);
    }
  }
}

}  // namespace longhand::reference
