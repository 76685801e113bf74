#include "core/contract/deltaformer.h"

#include <cmath>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

/// DeltaFormer, with the gain g_i of row i:
///   s_ij = scale q_i . k_j;  S_ij = exp(s_ij) / sum_(m<i) exp(s_im);
///   z_i = sum_(j<i) S_ij y_j;  y_i = v_i + g_i z_i
void run(ReferenceBackend&, const DeltaFormer& op) {
  const HeadRows q(op.q), k(op.k), v(op.v), earlier(op.earlier);
  const HeadResult y(op.y), read(op.read);
  const Rows gain(op.gain);
  const Result log_denominators(op.log_denominator);
  const std::int64_t width = op.v.width, heads = op.q.heads;

  for (const Sequence& s : sequences(op.queries, op.keys)) {
    for (std::int64_t h = 0; h < heads; ++h) {
      Matrix done(s.keys, width);  // the rows y_j computed so far
      for (std::int64_t j = 0; j < s.position(0); ++j) {
        for (std::int64_t c = 0; c < width; ++c) done(j, c) = earlier(s.key + j, h, c);
      }
      for (std::int64_t t = 0; t < s.queries; ++t) {
        const std::int64_t i = s.position(t), row = s.query + t;
        std::vector<double> p(static_cast<std::size_t>(i));
        for (std::int64_t j = 0; j < i; ++j) {
          p[j] = op.scale * dot(q, row, h, k, s.key + j, h, op.q.width);
        }
        const double log_denominator = i == 0 ? 0 : softmax(p);

        for (std::int64_t c = 0; c < width; ++c) {
          double z = 0;
          for (std::int64_t j = 0; j < i; ++j) z += p[j] * done(j, c);
          done(i, c) = v(s.key + i, h, c) + gain(row * heads + h) * z;
          read.put(row, h, c, z);
          y.put(row, h, c, done(i, c));
        }
        log_denominators.put(row, h, log_denominator);
      }
    }
  }
}

/// The backward pass of DeltaFormer, with the softmax weights S, the gain g_i of row i, and the
/// weighted mean z_i = sum_(j<i) S_ij y_j. dS_ij is the gradient of the score, not of the weight
/// S_ij. The rows j are processed from the last to the first:
///   W_j = dy_j + sum_(i>j) S_ij g_i W_i;
///   dv_j = W_j;  dg_i = W_i . z_i;  dS_ij = S_ij (g_i W_i . y_j - g_i W_i . z_i)
void run(ReferenceBackend&, const DeltaFormerBackward& op) {
  const HeadRows q(op.q), k(op.k), y(op.y), z(op.read), dy(op.dy);
  const Rows gain(op.gain), log_denominator(op.log_denominator);
  const HeadResult dq(op.dq), dk(op.dk), dv(op.dv);
  const Result dgain(op.dgain);
  const std::int64_t width = op.q.width, v_width = op.y.width, heads = op.q.heads;

  for (const Sequence& s : sequences(op.queries, op.keys)) {
    const std::int64_t n = s.keys;
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto p = [&](std::int64_t i, std::int64_t j) {
        const double score = op.scale * dot(q, s.query + i, h, k, s.key + j, h, width);
        return std::exp(score - log_denominator(s.query + i, h));
      };
      // Row i of gw is g_i W_i, the gain of row i times the gradient of v_i. Entry i of gw_z is its
      // dot product with z_i, the weighted mean of earlier outputs that row i reads.
      Matrix gw(n, v_width);
      std::vector<double> gw_z(static_cast<std::size_t>(n), 0.0);
      for (std::int64_t j = n - 1; j >= 0; --j) {
        const std::int64_t row = s.query + j;
        const double g = gain(row * heads + h);
        double w_z = 0;
        for (std::int64_t c = 0; c < v_width; ++c) {
          double w = dy(row, h, c);
          for (std::int64_t i = j + 1; i < n; ++i) w += p(i, j) * gw(i, c);
          dv.put(s.key + j, h, c, w);
          w_z += w * z(row, h, c);
          gw(j, c) = g * w;
          // gw_z[i] is the dot product of gw_i, which is the gain of row i times the gradient of
          // v_i, and z_i, which is the weighted mean of the earlier outputs that row i reads. It is
          // summed column by column, in the same order as gw_i . y_j below. dS_ij contains the
          // difference of these two sums. If row i sees only key j, z_i is y_j, and the difference
          // is then exactly 0, as it must be.
          gw_z[j] += gw(j, c) * z(row, h, c);
        }
        dgain.put(row * heads + h, w_z);
      }

      Matrix sum_dk(n, width);
      for (std::int64_t i = 0; i < n; ++i) {
        std::vector<double> sum_dq(static_cast<std::size_t>(width), 0.0);
        for (std::int64_t j = 0; j < i; ++j) {
          double gw_y = 0;
          for (std::int64_t c = 0; c < v_width; ++c) gw_y += gw(i, c) * y(s.query + j, h, c);
          const double scaled = op.scale * (p(i, j) * (gw_y - gw_z[i]));
          for (std::int64_t c = 0; c < width; ++c) {
            sum_dq[c] += scaled * k(s.key + j, h, c);
            sum_dk(j, c) += scaled * q(s.query + i, h, c);
          }
        }
        for (std::int64_t c = 0; c < width; ++c) dq.put(s.query + i, h, c, sum_dq[c]);
      }
      sum_dk.put(dk, s.key, h);
    }
  }
}

}  // namespace longhand::reference
