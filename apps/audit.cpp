#include "apps/audit.h"

#include <algorithm>
#include <cstring>

#include "autograd/tape.h"
#include "core/error.h"
#include "core/npy.h"
#include "core/quote.h"

namespace longhand::app {
namespace {

using catalog::Argument;
using catalog::HostTensor;
using catalog::Operation;
using catalog::Output;
using catalog::Role;

HostTensor floats(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry& entry = *file.find(name);
  LONGHAND_CHECK(entry.dtype && is_float(*entry.dtype), file.name(), ": tensor ", quote(name),
                 ": expected F64, F32 or BF16, got ", entry.type);
  HostTensor host{entry.shape, std::vector<double>(static_cast<std::size_t>(entry.shape.size()))};
  const auto convert = [&]<class T>(T value) {
    for (std::size_t i = 0; i < host.values.size(); ++i) {
      std::memcpy(&value, entry.bytes.data() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_same_v<T, bf16>) {
        host.values[i] = static_cast<float>(value);
      } else {
        host.values[i] = static_cast<double>(value);
      }
    }
  };
  visit_dtype(*entry.dtype, convert);
  return host;
}

HostTensor indices(const SafetensorsFile& file, const std::string& name) {
  const std::vector<std::int32_t> values = file.to_i32(name);
  return {file.find(name)->shape, {values.begin(), values.end()}};
}

/// The tensor names that a file for this operation may contain, separated by commas, for error
/// messages.
std::string known_names(const Operation& operation) {
  std::string names;
  for (const Argument& input : operation.inputs) names += input.name + ", ";
  for (const std::string& output : operation.outputs) names += "d" + output + ", ";
  names.resize(names.size() - 2);
  return names;
}

bool has_gradient(const Output& output) { return output.value.wants_grad(); }

/// Gives each output of the operation the gradient that the file contains for it. An output named
/// "loss" without a gradient in the file gets the gradient 1.
void seed_gradients(const Operation& operation, const AuditFile& file, Backend& backend,
                    const std::vector<Output>& outputs) {
  LONGHAND_CHECK(std::ranges::any_of(outputs, has_gradient), operation.name,
                 ": the op has no gradient");
  for (const Output& output : outputs) {
    const auto given = file.output_gradients.find(output.name);
    const bool found = given != file.output_gradients.end();
    if (!has_gradient(output)) {
      LONGHAND_CHECK(!found, operation.name, ": output '", output.name,
                     "' has no gradient; remove the tensor d", output.name, " from the file");
      continue;
    }
    const Tensor& y = output.value.value();
    if (!found) {
      LONGHAND_CHECK(output.name == "loss", operation.name, ": the tensor d", output.name,
                     " is missing: expected the gradient of output '", output.name, "', of shape ",
                     y.shape());
      output.value.sink().add(Tensor::from(backend, y.shape(), y.dtype(), std::vector{1.0}));
      continue;
    }
    LONGHAND_CHECK(given->second.shape == y.shape(), operation.name, ": d", output.name,
                   ": expected shape ", y.shape(), ", got ", given->second.shape);
    output.value.sink().add(Tensor::from(backend, y.shape(), y.dtype(), given->second.values));
  }
}

}  // namespace

AuditFile read_audit_file(const std::filesystem::path& path, const Operation& operation) {
  const ArrayFile opened(path, operation.inputs.front().name);
  const SafetensorsFile& file = opened.arrays();
  AuditFile result;
  std::optional<DType> first_activation, first_float;
  for (const Argument& input : operation.inputs) {
    const SafetensorsEntry* const entry = file.find(input.name);
    if (entry == nullptr) continue;  // prepare() reports missing required inputs
    const bool index = input.role == Role::index;
    result.values.inputs[input.name] = index ? indices(file, input.name) : floats(file, input.name);
    if (index) continue;
    if (!first_float) first_float = entry->dtype;
    if (!first_activation && input.role == Role::activation) first_activation = entry->dtype;
  }
  for (const std::string& output : operation.outputs) {
    const std::string name = "d" + output;
    if (file.find(name)) result.output_gradients[output] = floats(file, name);
  }
  for (const SafetensorsEntry& entry : file.entries()) {
    const bool known =
        result.values.inputs.contains(entry.name) ||
        (entry.name.starts_with('d') && result.output_gradients.contains(entry.name.substr(1)));
    LONGHAND_CHECK(known, file.name(), ": unknown tensor ", quote(entry.name), "; op ",
                   operation.name, " has only the tensors ", known_names(operation));
  }
  result.type = first_activation.value_or(first_float.value_or(DType::f32));
  return result;
}

std::vector<NamedTensor> audit(const Operation& operation, const AuditFile& file, Backend& backend,
                               DType type, bool gradients) {
  const catalog::Call call = prepare(operation, file.values, backend, type, gradients);
  Tape tape;
  std::vector<Output> outputs;
  if (gradients) {
    const Recording recording(tape);
    outputs = operation.run(call);
  } else {
    outputs = operation.run(call);
  }

  std::vector<NamedTensor> results;
  for (const Output& output : outputs) results.push_back({output.name, output.value.value()});
  if (!gradients) return results;

  seed_gradients(operation, file, backend, outputs);
  tape.backward({});
  for (const Argument& input : operation.inputs) {
    const Var x = call.maybe(input.name);
    if (!x || !x.wants_grad()) continue;
    // If no output depends on an input (for example, because all weights are 0), the tape has no
    // gradient for this input. Its gradient is then zero.
    results.push_back({"d" + input.name,
                       x.grad() ? x.grad() : Tensor::zeros(backend, x.shape(), x.value().dtype())});
  }
  return results;
}

std::vector<std::string> differentiable_outputs(const Operation& operation) {
  Rng rng(1, Purpose::test);
  const auto backend = make_reference_backend();
  const auto cases = operation.cases(rng);
  const catalog::Call call = prepare(operation, cases.at(0), *backend, DType::f64, true);
  Tape tape;
  const Recording recording(tape);
  std::vector<std::string> names;
  for (const Output& output : operation.run(call)) {
    if (has_gradient(output)) names.push_back(output.name);
  }
  return names;
}

}  // namespace longhand::app
