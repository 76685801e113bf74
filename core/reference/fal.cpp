#include "core/contract/fal.h"

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Fal& op) {
  const HeadRows q(op.q), k(op.k), v(op.v);
  const HeadResult y(op.y);
  auto* match = op.match.data<std::int32_t>();
  const std::int64_t group = op.q.heads / op.k.heads;

  for (const Sequence& s : sequences(op.queries, op.keys)) {
    for (std::int64_t t = 0; t < s.queries; ++t) {
      for (std::int64_t h = 0; h < op.q.heads; ++h) {
        const std::int64_t i = s.query + t, g = h / group;
        double score = 0;
        std::int64_t m = s.position(t) - 1;
        for (; m >= 0; --m) {
          score = dot(q, i, h, k, s.key + m, g, op.q.width);
          if (score > 0) break;
        }
        match[i * op.q.heads + h] = static_cast<std::int32_t>(m);
        for (std::int64_t c = 0; c < op.v.width; ++c) {
          y.put(i, h, c, m < 0 ? 0 : score * v(s.key + m + 1, g, c));
        }
      }
    }
  }
}

void run(ReferenceBackend&, const FalBackward& op) {
  const HeadRows q(op.q), k(op.k), v(op.v), dy(op.dy);
  const HeadResult dq(op.dq), dk(op.dk), dv(op.dv);
  const auto* match = op.match.data<std::int32_t>();
  const std::int64_t group = op.q.heads / op.k.heads;
  const std::int64_t width = op.q.width, v_width = op.v.width;

  for (const Sequence& s : sequences(op.queries, op.keys)) {
    for (std::int64_t g = 0; g < op.k.heads; ++g) {
      std::vector<double> sum_dk(static_cast<std::size_t>(s.keys * width), 0.0);
      std::vector<double> sum_dv(static_cast<std::size_t>(s.keys * v_width), 0.0);
      for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
        for (std::int64_t t = 0; t < s.queries; ++t) {
          const std::int64_t i = s.query + t, m = match[i * op.q.heads + h];
          if (m < 0) {
            for (std::int64_t c = 0; c < width; ++c) dq.put(i, h, c, 0);
            continue;
          }
          const double score = dot(q, i, h, k, s.key + m, g, width);
          const double dscore = dot(dy, i, h, v, s.key + m + 1, g, v_width);
          for (std::int64_t c = 0; c < width; ++c) {
            dq.put(i, h, c, dscore * k(s.key + m, g, c));
            sum_dk[m * width + c] += dscore * q(i, h, c);
          }
          for (std::int64_t c = 0; c < v_width; ++c) {
            sum_dv[(m + 1) * v_width + c] += score * dy(i, h, c);
          }
        }
      }
      for (std::int64_t j = 0; j < s.keys; ++j) {
        for (std::int64_t c = 0; c < width; ++c) dk.put(s.key + j, g, c, sum_dk[j * width + c]);
        for (std::int64_t c = 0; c < v_width; ++c) {
          dv.put(s.key + j, g, c, sum_dv[j * v_width + c]);
        }
      }
    }
  }
}

}  // namespace longhand::reference
