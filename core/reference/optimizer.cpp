#include "core/contract/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const SquareSums& op) {
  for (std::size_t k = 0; k < op.tensors.size(); ++k) {
    const Rows x(op.tensors[k]);
    const std::int64_t n = op.tensors[k].size();
    for (std::int64_t p = 0; p < op.sums[k].size(); ++p) {
      const std::int64_t first = p * SquareSums::piece;
      double sum = 0;
      for (std::int64_t i = first; i < std::min(n, first + SquareSums::piece); ++i) {
        sum += x(i) * x(i);
      }
      Result(op.sums[k]).put(p, sum);
    }
  }
}

void run(ReferenceBackend&, const GlobalNorm& op) {
  const Rows squares(op.squares);
  double sum = 0;
  for (std::int64_t p = 0; p < op.squares.size(); ++p) sum += squares(p);
  const double norm = std::sqrt(sum);
  Result(op.norm).put(0, norm);

  bool sound = Rows(op.factor)(0) != 0 && std::isfinite(Rows(op.norm)(0));
  for (std::int64_t i = 0; op.losses && i < op.losses.size(); ++i) {
    sound = sound && std::isfinite(Rows(op.losses)(i));
  }
  const double factor = op.largest == 0 ? 1 : std::min(1.0, op.largest / norm);
  Result(op.factor).put(0, sound ? factor : 0);
}

void run(ReferenceBackend&, const Adam& op) {
  const double factor = op.factor ? Rows(op.factor)(0) : 1;
  if (factor == 0 || op.parameters.empty()) return;
  const Rows now(op.now);
  const double rate = now(0), rate_m = now(1), scale_v = now(2);

  for (std::size_t k = 0; k < op.parameters.size(); ++k) {
    const Rows old_w(op.parameters[k]), gradient(op.gradients[k]), old_m(op.m[k]), old_v(op.v[k]);
    const Result new_w(op.parameters[k]), new_m(op.m[k]), new_v(op.v[k]);
    const double decay = op.decay[k];

    for (std::int64_t i = 0; i < op.parameters[k].size(); ++i) {
      const double w = old_w(i);
      const double g = factor * gradient(i) + (op.decoupled ? 0 : decay * w);
      const double m = op.beta1 * old_m(i) + (1 - op.beta1) * g;
      const double v = op.beta2 * old_v(i) + (1 - op.beta2) * g * g;
      const double kept = op.decoupled ? w * (1 - rate * decay) : w;
      new_m.put(i, m);
      new_v.put(i, v);
      new_w.put(i, kept - rate_m * m / (std::sqrt(v * scale_v) + op.epsilon));
    }
  }
}

void run(ReferenceBackend&, const Sgd& op) {
  const double factor = op.factor ? Rows(op.factor)(0) : 1;
  if (factor == 0 || op.parameters.empty()) return;
  const double rate = Rows(op.rate)(0);

  for (std::size_t k = 0; k < op.parameters.size(); ++k) {
    const Rows old_w(op.parameters[k]), gradient(op.gradients[k]), old_u(op.velocities[k]);
    const Result new_w(op.parameters[k]), new_u(op.velocities[k]);
    for (std::int64_t i = 0; i < op.parameters[k].size(); ++i) {
      const double w = old_w(i);
      const double g = factor * gradient(i) + op.decay[k] * w;
      const double u = op.momentum * old_u(i) + g;
      new_u.put(i, u);
      new_w.put(i, w - rate * u);
    }
  }
}

}  // namespace longhand::reference
