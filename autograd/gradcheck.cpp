#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand {
namespace {

/// The step: its square is the quotient's own error, 2^-53 / h that of the difference.
constexpr double h = 1e-5;

using catalog::Case;
using catalog::Operation;
using catalog::Output;

/// sum over outputs of r . y, with r drawn anew from the same stream each time.
double project(const std::vector<Output>& outputs, Rng weights) {
  double sum = 0;
  for (const Output& output : outputs) {
    if (!is_float(output.value.value().dtype())) continue;
    for (const double y : output.value.value().to_doubles()) sum += weights.normal() * y;
  }
  return sum;
}

}  // namespace

GradcheckResult gradcheck(const Operation& operation, Backend& reference, std::uint64_t seed) {
  GradcheckResult result;
  Rng rng(seed, Purpose::test);
  const std::vector<Case> cases = operation.cases(rng);
  for (std::size_t number = 0; number < cases.size(); ++number) {
    const Case& values = cases[number];
    const Rng weights(seed, Purpose::test, 1, static_cast<std::uint32_t>(number));

    // The gradients as the op's backward functions give them.
    const catalog::Call call = prepare(operation, values, reference, DType::f64, true);
    Tape tape;
    std::vector<Output> outputs;
    {
      const Recording recording(tape);
      outputs = operation.run(call);
    }
    Rng draw = weights;
    std::vector<Var> wanted;
    for (const Output& output : outputs) {
      if (!is_float(output.value.value().dtype())) continue;
      std::vector<double> r(static_cast<std::size_t>(output.value.value().size()));
      for (double& value : r) value = draw.normal();
      if (!output.value.wants_grad()) continue;
      output.value.sink().add(Tensor::from(reference, output.value.shape(), DType::f64, r));
      wanted.push_back(output.value);
    }
    if (wanted.empty()) continue;
    tape.backward({});
    ++result.cases;

    for (const catalog::Argument& argument : operation.inputs) {
      const auto found = values.inputs.find(argument.name);
      if (found == values.inputs.end() || !argument.differentiable) continue;
      const Var& input = call.in(argument.name);
      if (!input.wants_grad() || input.value().size() == 0) continue;
      const std::vector<double> analytic =
          input.grad() ? input.grad().to_doubles()
                       : std::vector<double>(found->second.values.size(), 0.0);

      Case moved = values;
      std::vector<double>& x = moved.inputs.at(argument.name).values;
      std::vector<double> numeric(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double at = x[i];
        x[i] = at + h;
        const double above = project(
            operation.run(prepare(operation, moved, reference, DType::f64, false)), weights);
        x[i] = at - h;
        const double below = project(
            operation.run(prepare(operation, moved, reference, DType::f64, false)), weights);
        x[i] = at;
        numeric[i] = (above - below) / (2 * h);
      }

      double largest = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        largest = std::max({largest, std::abs(analytic[i]), std::abs(numeric[i])});
      }
      const double unit = largest < 1e-6 ? 1 : largest;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = std::abs(analytic[i] - numeric[i]) / unit;
        ++result.entries;
        if (!(error <= result.worst)) {  // NaN counts as worst
          result.worst = error;
          result.where = text("case ", number, ", ", argument.name, '[', i, ']');
        }
      }
    }
  }
  return result;
}

}  // namespace longhand
