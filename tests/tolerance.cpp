#include "tests/tolerance.h"

#include <cmath>
#include <limits>

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand::tolerance {
namespace {

constexpr double safety = 16;  // rounding errors of a whole computation against one of its inputs'
constexpr int trials = 6;

double round_to(double value, DType type) {
  switch (type) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::bf16:
      return static_cast<float>(bf16(static_cast<float>(value)));
    default:
      return value;
  }
}

}  // namespace

double unit(const catalog::Operation& operation, DType activations, Math math) {
  if (activations == DType::f64) return 0x1p-53;
  if (activations == DType::bf16) return 0x1p-9;
  if (!operation.products || math == Math::exact) return 0x1p-24;
  return math == Math::fast ? 0x1p-17 : 0x1p-9;
}

Results run(const catalog::Operation& operation, const catalog::Case& values, Backend& backend,
            DType activations) {
  const catalog::Call call = prepare(operation, values, backend, activations, true);
  Tape tape;
  std::vector<catalog::Output> outputs;
  {
    const Recording recording(tape);
    outputs = operation.run(call);
  }
  Results results;
  Rng rng(7, Purpose::test);
  for (const catalog::Output& output : outputs) {
    const Tensor& y = output.value.value();
    results[output.name] = y.to_doubles();
    if (!is_float(y.dtype())) continue;
    Values dy(static_cast<std::size_t>(y.size()));
    for (double& value : dy) value = round_to(rng.normal(), DType::bf16);
    if (output.value.wants_grad()) {
      output.value.sink().add(Tensor::from(backend, y.shape(), y.dtype(), dy));
    }
  }
  tape.backward({});
  for (const catalog::Argument& argument : operation.inputs) {
    if (!values.inputs.contains(argument.name) || !argument.differentiable) continue;
    const Tensor grad = call.in(argument.name).grad();
    if (grad) results["d" + argument.name] = grad.to_doubles();
  }
  return results;
}

catalog::Case rounded(const catalog::Operation& operation, const catalog::Case& values,
                      DType activations) {
  catalog::Case result = values;
  for (const catalog::Argument& argument : operation.inputs) {
    const auto found = result.inputs.find(argument.name);
    if (found == result.inputs.end()) continue;
    const DType type = type_of(argument.role, activations);
    for (double& value : found->second.values) value = round_to(value, type);
  }
  return result;
}

Results bounds(const catalog::Operation& operation, const catalog::Case& values, Backend& reference,
               const Results& expected, DType activations, double unit) {
  Results bound;
  for (const auto& [name, y] : expected) bound[name] = Values(y.size(), 0.0);
  Rng rng(11, Purpose::test);
  for (int trial = 0; trial < trials; ++trial) {
    catalog::Case moved = values;
    for (const catalog::Argument& argument : operation.inputs) {
      const auto found = moved.inputs.find(argument.name);
      if (found == moved.inputs.end() || argument.role == catalog::Role::index) continue;
      for (double& value : found->second.values) value *= 1 + unit * rng.normal();
    }
    const Results shifted = run(operation, moved, reference, DType::f64);
    for (const auto& [name, y] : expected) {
      const Values& z = shifted.at(name);
      for (std::size_t i = 0; i < y.size(); ++i) {
        bound[name][i] = std::max(bound[name][i], std::abs(z[i] - y[i]));
      }
    }
  }
  const double rounding = activations == DType::bf16 ? 0x1p-8 : 0x1p-22;
  for (auto& [name, b] : bound) {
    // One entry's deviation in a few trials may be small by luck: the tensor's typical one counts
    // too.
    double squares = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      squares += b[i] * b[i];
      size = std::max(size, std::abs(expected.at(name)[i]));
    }
    const double typical = b.empty() ? 0 : std::sqrt(squares / static_cast<double>(b.size()));
    for (std::size_t i = 0; i < b.size(); ++i) {
      b[i] = operation.slack * safety * std::max(b[i], typical) +
             rounding * std::abs(expected.at(name)[i]) + unit * 1e-3 * size + 1e-30;
    }
  }
  return bound;
}

Comparison compare(const Results& expected, const Results& got, const Results& bound) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Comparison result;
  for (const auto& [name, y] : expected) {
    const auto found = got.find(name);
    if (found == got.end() || found->second.size() != y.size()) {
      result = {infinity, name + " is missing or has another size"};
      continue;
    }
    const Values& most = bound.at(name);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double a = y[i], b = found->second[i];
      double used = std::abs(a - b) / most[i];
      if (!std::isfinite(a)) used = a == b || (std::isnan(a) && std::isnan(b)) ? 0 : infinity;
      if (used <= result.used) continue;  // a message for every entry would take most of the time
      result = {std::isnan(used) ? infinity : used,
                text(name, '[', i, "]: expected ", a, ", got ", b)};
    }
  }
  for (const auto& [name, y] : got) {
    if (!expected.contains(name)) result = {infinity, name + " is not expected"};
  }
  return result;
}

}  // namespace longhand::tolerance
