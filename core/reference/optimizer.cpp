#include "core/contract/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void ReferenceBackend::run(const GlobalNorm& op) {
  double squares = 0;
  for (const Tensor& tensor : op.tensors) {
    const Rows x(tensor);
    for (std::int64_t i = 0; i < tensor.size(); ++i) squares += x(i) * x(i);
  }
  const double norm = std::sqrt(squares);
  Result(op.norm).put(0, norm);
  Result(op.factor).put(0, op.largest == 0 ? 1 : std::min(1.0, op.largest / norm));
}

void ReferenceBackend::run(const Adam& op) {
  const double factor = op.factor ? op.factor.item() : 1;
  const auto step = static_cast<double>(op.step);
  const double correct_m = 1 - std::pow(op.beta1, step), correct_v = 1 - std::pow(op.beta2, step);

  for (std::size_t k = 0; k < op.parameters.size(); ++k) {
    const Rows old_w(op.parameters[k]), gradient(op.gradients[k]), old_m(op.m[k]), old_v(op.v[k]);
    const Result new_w(op.parameters[k]), new_m(op.m[k]), new_v(op.v[k]);
    const double decay = op.decay[k];

    for (std::int64_t i = 0; i < op.parameters[k].size(); ++i) {
      const double w = old_w(i);
      const double g = factor * gradient(i) + (op.decoupled ? 0 : decay * w);
      const double m = op.beta1 * old_m(i) + (1 - op.beta1) * g;
      const double v = op.beta2 * old_v(i) + (1 - op.beta2) * g * g;
      const double kept = op.decoupled ? w * (1 - op.rate * decay) : w;
      new_m.put(i, m);
      new_v.put(i, v);
      new_w.put(i, kept - op.rate * (m / correct_m) / (std::sqrt(v / correct_v) + op.epsilon));
    }
  }
}

}  // namespace longhand::reference
