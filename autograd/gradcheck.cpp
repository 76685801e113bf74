#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "autograd/tape.h"
#include "autograd/tolerance.h"
#include "core/error.h"

namespace longhand {
namespace {

/// Step size of the difference quotients. The extrapolated quotient (R in gradcheck.h) has a
/// truncation error of about h^4 = 1e-12 and a rounding error of about 2^-53 / h = 1e-13.
constexpr double h = 1e-3;

using catalog::Case;
using catalog::Operation;
using catalog::Output;
using Values = std::vector<double>;

/// The scalar L = sum_k r_k y_k that gradcheck differentiates. y_k are the entries of all outputs,
/// and r_k are random factors that are the same in every call.
struct Projection {
  double sum = 0, squares = 0;  // sums of the terms r_k y_k and of their squares
};

Projection project(const std::vector<Output>& outputs, Rng weights) {
  Projection result;
  for (const Output& output : outputs) {
    if (!is_float(output.value.value().dtype())) continue;
    for (const double y : output.value.value().to_doubles()) {
      const double term = weights.normal() * y;
      result.sum += term;
      result.squares += term * term;
    }
  }
  return result;
}

/// Two difference quotients that approximate the derivative with respect to one input entry.
struct Quotient {
  double plain = 0;         // the difference quotient D(h) with the step h (gradcheck.h)
  double extrapolated = 0;  // from the steps h and 2h, R in gradcheck.h
};

Quotient quotient(const Operation& operation, Case& values, double& x, Backend& reference,
                  const Rng& weights) {
  const double at = x;
  const auto slope = [&](double step) {
    const auto run = [&] {
      return project(operation.run(prepare(operation, values, reference, DType::f64, false)),
                     weights)
          .sum;
    };
    const double right = at + step, left = at - step;
    x = right;
    const double above = run();
    x = left;
    const double below = run();
    x = at;
    // The divisor right - left is used instead of 2 * step because at + step and at - step were
    // rounded to f64.
    return (above - below) / (right - left);
  };
  const double once = slope(h), twice = slope(2 * h);
  return {once, (4 * once - twice) / 3};
}

/// Compares two sets of derivatives with respect to one input of one case: `analytic`, computed by
/// the backward functions, and `numeric`, the difference quotients.
void compare(const std::string& where, const Values& analytic, const std::vector<Quotient>& numeric,
             double rounding, GradcheckResult& result) {
  double largest = 0, squares = 0;
  for (std::size_t i = 0; i < analytic.size(); ++i) {
    largest = std::max({largest, std::abs(analytic[i]), std::abs(numeric[i].extrapolated)});
    squares += std::pow(numeric[i].extrapolated - numeric[i].plain, 2);
  }
  const double unit = largest < 1e-6 ? 1 : largest;
  const double typical = std::sqrt(squares / static_cast<double>(analytic.size()));
  for (std::size_t i = 0; i < analytic.size(); ++i) {
    const auto [plain, extrapolated] = numeric[i];
    const double error = std::abs(analytic[i] - extrapolated);
    const double truncation = 1e-2 * std::abs(extrapolated - plain) + 1e-3 * typical;
    const double share = error / (truncation + rounding + 1e-300);
    ++result.entries;
    // A NaN counts as larger than any number.
    if (!(error / unit <= result.worst)) result.worst = error / unit;
    if (!(share <= result.bound)) {
      result.bound = share;
      result.where = text(where, '[', i, "]: ", analytic[i], ", quotient ", extrapolated);
    }
  }
}

}  // namespace

GradcheckResult gradcheck(const Operation& operation, Backend& reference, std::uint64_t seed) {
  GradcheckResult result;
  Rng rng(seed, Purpose::test);
  const std::vector<Case> cases = operation.cases(rng);
  for (std::size_t number = 0; number < cases.size(); ++number) {
    const Case& values = cases[number];
    const Rng weights(seed, Purpose::test, 1, static_cast<std::uint32_t>(number));

    // Compute the gradients by the operation's backward functions.
    const catalog::Call call = prepare(operation, values, reference, DType::f64, true);
    Tape tape;
    std::vector<Output> outputs;
    {
      const Recording recording(tape);
      outputs = operation.run(call);
    }
    double squares = project(outputs, weights).squares;
    Rng draw = weights;
    bool wanted = false;
    for (const Output& output : outputs) {
      if (!is_float(output.value.value().dtype())) continue;
      Values r(static_cast<std::size_t>(output.value.value().size()));
      for (double& value : r) value = draw.normal();
      if (!output.value.wants_grad()) continue;
      output.value.sink().add(Tensor::from(reference, output.value.shape(), DType::f64, r));
      wanted = true;
    }
    if (!wanted) continue;
    tape.backward({});
    ++result.cases;

    std::map<std::string, Values> gradients;
    for (const catalog::Argument& argument : operation.inputs) {
      const auto found = values.inputs.find(argument.name);
      if (found == values.inputs.end() || !argument.differentiable) continue;
      const Var& input = call.in(argument.name);
      if (!input.wants_grad() || input.value().size() == 0) continue;
      Values& g = gradients[argument.name];
      g = input.grad() ? input.grad().to_doubles() : Values(found->second.values.size(), 0.0);
      for (std::size_t i = 0; i < g.size(); ++i)
        squares += std::pow(found->second.values[i] * g[i], 2);
    }
    const double rounding = 32 * 0x1p-53 / h * std::sqrt(squares);
    for (const auto& [name, analytic] : gradients) {
      Case moved = values;
      std::vector<Quotient> numeric;
      for (double& x : moved.inputs.at(name).values) {
        numeric.push_back(quotient(operation, moved, x, reference, weights));
      }
      compare(text("case ", number, ", ", name), analytic, numeric, rounding, result);
    }
  }
  return result;
}

GradcheckResult gradcheck(const Function& f, const std::vector<catalog::HostTensor>& arguments,
                          Backend& reference, std::uint64_t seed) {
  const auto name = [](std::size_t i) { return text("argument ", i); };
  Case values;
  Operation operation;
  operation.name = "function";
  operation.outputs = {"y"};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    operation.inputs.push_back({name(i), "[...]"});
    values.inputs[name(i)] = arguments[i];
  }
  operation.run = [&](const catalog::Call& call) -> std::vector<Output> {
    std::vector<Var> all;
    for (std::size_t i = 0; i < arguments.size(); ++i) all.push_back(call.in(name(i)));
    return {{"y", f(all)}};
  };
  operation.cases = [&](Rng&) -> std::vector<Case> { return {values}; };
  return gradcheck(operation, reference, seed);
}

GradcheckResult gradcheck_on(const Operation& operation, Backend& backend, DType activations,
                             double unit, Backend& reference, std::uint64_t seed) {
  GradcheckResult result;
  Rng rng(seed, Purpose::test);
  std::vector<Case> cases = operation.cases(rng);
  result.cases = static_cast<std::int64_t>(cases.size());
  tolerance::Standard standard(operation, std::move(cases), reference);
  const tolerance::Worst worst =
      standard.compare(activations, unit, [&](const Case& values, const tolerance::Results&) {
        tolerance::Results got = tolerance::run(operation, values, backend, activations);
        for (const catalog::Argument& argument : operation.inputs) {
          const auto gradient = got.find("d" + argument.name);
          if (gradient != got.end()) result.entries += gradient->second.shape.size();
        }
        return got;
      });
  result.bound = worst.used;
  result.where = worst.where;
  return result;
}

}  // namespace longhand
