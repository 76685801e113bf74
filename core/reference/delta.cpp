#include "core/contract/delta.h"

#include <algorithm>
#include <cmath>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {
namespace {

using Memory = std::vector<double>;  // the memory of one head, [width, v_width]

/// The inputs of the gated delta rule: the keys and queries, and the beta and decay of each token.
struct DeltaTokens {
  HeadRows q, k;
  Rows beta, decay;
  bool decays;
  double scale;
  std::int64_t width, v_width, group;

  template <class Op>
  DeltaTokens(const Op& op, std::int64_t value_width)
      : q(op.q),
        k(op.k),
        beta(op.beta),
        decay(op.decay),
        decays(static_cast<bool>(op.decay)),
        scale(op.scale),
        width(op.k.width),
        v_width(value_width),
        group(op.q.heads / op.k.heads) {}
  double a(std::int64_t row, std::int64_t head) const {
    return decays ? std::exp(decay(row, head)) : 1.0;
  }
};

/// Returns the memory of a head before each token of a sequence, and after the last token. The
/// memory S_t after token t is
///   S_t = a_t S_(t-1) + beta_t k_t w_t^T,
/// where a_t = exp(decay_t), w_t is row t of `error`, and k_t includes the factor `scale`.
std::vector<Memory> memories_of(const DeltaTokens& in, const Rows& error, const Sequence& s,
                                std::int64_t h) {
  std::vector<Memory> memories{Memory(static_cast<std::size_t>(in.width * in.v_width), 0.0)};
  for (std::int64_t row = s.key; row < s.key + s.keys; ++row) {
    Memory next = memories.back();
    for (std::int64_t r = 0; r < in.width; ++r) {
      for (std::int64_t c = 0; c < in.v_width; ++c) {
        double& entry = next[r * in.v_width + c];
        entry = in.a(row, h) * entry +
                in.beta(row, h) * in.scale * in.k(row, h, r) * error(row, h * in.v_width + c);
      }
    }
    memories.push_back(std::move(next));
  }
  return memories;
}

}  // namespace

void run(ReferenceBackend&, const Delta& op) {
  const DeltaTokens in(op, op.v.width);
  const HeadRows v(op.v);
  const HeadResult y(op.y);
  const Rows before(op.before);
  const Result error(op.error), after(op.after);
  const std::int64_t width = in.width, v_width = in.v_width;

  std::int64_t number = 0;
  for (const Sequence& s : sequences(op.segments, op.segments)) {
    for (std::int64_t h = 0; h < op.k.heads; ++h) {
      Memory memory(static_cast<std::size_t>(width * v_width), 0.0);
      for (std::int64_t i = 0; op.before && i < width * v_width; ++i) {
        memory[i] = before(number, h * width * v_width + i);
      }
      for (std::int64_t row = s.key; row < s.key + s.keys; ++row) {
        const double a = in.a(row, h);
        for (std::int64_t c = 0; c < v_width; ++c) {
          double held = 0;
          for (std::int64_t r = 0; r < width; ++r) {
            held += memory[r * v_width + c] * in.scale * in.k(row, h, r);
          }
          const double w = v(row, h, c) - a * held;
          error.put(row, h * v_width + c, w);
          for (std::int64_t r = 0; r < width; ++r) {
            double& entry = memory[r * v_width + c];
            entry = a * entry + in.beta(row, h) * in.scale * in.k(row, h, r) * w;
          }
          for (std::int64_t g = h * in.group; g < (h + 1) * in.group; ++g) {
            double sum = 0;
            for (std::int64_t r = 0; r < width; ++r) {
              sum += memory[r * v_width + c] * in.scale * in.q(row, g, r);
            }
            y.put(row, g, c, sum);
          }
        }
      }
      for (std::int64_t i = 0; i < width * v_width; ++i) {
        after.put(number, h * width * v_width + i, memory[i]);
      }
    }
    ++number;
  }
}

void run(ReferenceBackend&, const DeltaBackward& op) {
  const DeltaTokens in(op, op.dy.width);
  const HeadRows dy(op.dy);
  const Rows error(op.error);
  const HeadResult dq(op.dq), dk(op.dk), dv(op.dv);
  const Result dbeta(op.dbeta), ddecay(op.ddecay);
  const std::int64_t width = in.width, v_width = in.v_width;

  for (const Sequence& s : sequences(op.segments, op.segments)) {
    for (std::int64_t h = 0; h < op.k.heads; ++h) {
      const auto w = [&](std::int64_t row, std::int64_t c) { return error(row, h * v_width + c); };
      const std::vector<Memory> memories = memories_of(in, error, s, h);
      // The gradient of the memory after the current token t.
      Memory d(static_cast<std::size_t>(width * v_width), 0.0);
      for (std::int64_t t = s.keys - 1; t >= 0; --t) {
        const std::int64_t row = s.key + t;
        const Memory &old = memories[t], &now = memories[t + 1];
        const double a = in.a(row, h), beta = in.beta(row, h);
        for (std::int64_t g = h * in.group; g < (h + 1) * in.group; ++g) {
          for (std::int64_t r = 0; r < width; ++r) {
            double sum = 0;
            for (std::int64_t c = 0; c < v_width; ++c) {
              d[r * v_width + c] += in.scale * in.q(row, g, r) * dy(row, g, c);
              sum += now[r * v_width + c] * dy(row, g, c);
            }
            dq.put(row, g, r, in.scale * sum);
          }
        }

        std::vector<double> dw(static_cast<std::size_t>(v_width));
        double sum_beta = 0, sum_decay = 0;
        for (std::int64_t c = 0; c < v_width; ++c) {
          double du = 0;
          for (std::int64_t r = 0; r < width; ++r) {
            du += d[r * v_width + c] * in.scale * in.k(row, h, r);
          }
          sum_beta += du * w(row, c);
          dw[c] = beta * du;
          dv.put(row, h, c, dw[c]);
        }
        for (std::int64_t r = 0; r < width; ++r) {
          double sum = 0;
          for (std::int64_t c = 0; c < v_width; ++c) {
            double& entry = d[r * v_width + c];
            sum += entry * beta * w(row, c) - a * old[r * v_width + c] * dw[c];
            // Replaces the gradient of the memory after token t by that of the memory before it.
            entry = a * (entry - in.scale * in.k(row, h, r) * dw[c]);
            sum_decay += old[r * v_width + c] * entry;
          }
          dk.put(row, h, r, in.scale * sum);
        }
        dbeta.put(row, h, sum_beta);
        ddecay.put(row, h, sum_decay);
      }
    }
  }
}

}  // namespace longhand::reference
