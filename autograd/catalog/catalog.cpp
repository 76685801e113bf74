#include "autograd/catalog/catalog.h"

#include <charconv>

#include "core/error.h"
#include "core/formulas.h"
#include "core/nearest.h"
#include "core/quote.h"

namespace longhand::catalog {
namespace {

template <class T>
T parse(const std::string& op, const std::string& name, const std::string& value,
        std::string_view kind) {
  T number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  LONGHAND_CHECK(error == std::errc() && end == value.data() + value.size(), op, ": attribute ",
                 name, ": expected ", kind, ", got '", value, "'");
  return number;
}

std::vector<Operation> gather_all() {
  std::vector<Operation> all;
  for (const Family* family : families()) {
    for (Operation& operation : family->operations()) all.push_back(std::move(operation));
  }
  return all;
}

}  // namespace

DType type_of(Role role, DType activations) {
  switch (role) {
    case Role::activation:
      return activations;
    case Role::master:
    case Role::weight:
      return master_type(activations);
    default:
      return DType::i32;
  }
}

Call::Call(const Operation& operation, Backend& backend, DType activations,
           std::map<std::string, Var> inputs, std::map<std::string, std::string> attributes)
    : operation_(&operation),
      backend_(&backend),
      activations_(activations),
      inputs_(std::move(inputs)),
      attributes_(std::move(attributes)) {
  const auto known = [](const auto& list, const std::string& name) {
    for (const auto& entry : list) {
      if (entry.name == name) return true;
    }
    return false;
  };
  for (const auto& [name, value] : inputs_) {
    LONGHAND_CHECK(known(operation.inputs, name), operation.name, " has no input '", name, "'");
  }
  for (const auto& [name, value] : attributes_) {
    LONGHAND_CHECK(known(operation.attributes, name), operation.name, " has no attribute '", name,
                   "'");
  }
  for (const Argument& argument : operation.inputs) {
    LONGHAND_CHECK(argument.optional || inputs_.contains(argument.name), operation.name,
                   ": input '", argument.name, "' ", argument.shape, " is missing");
  }
}

const Var& Call::in(const std::string& name) const {
  const auto found = inputs_.find(name);
  LONGHAND_CHECK(found != inputs_.end(), operation_->name, ": input '", name, "' is missing");
  return found->second;
}

Var Call::maybe(const std::string& name) const {
  const auto found = inputs_.find(name);
  return found == inputs_.end() ? Var() : found->second;
}

const std::string& Call::word(const std::string& name) const {
  if (const auto found = attributes_.find(name); found != attributes_.end()) return found->second;
  for (const Attribute& attribute : operation_->attributes) {
    if (attribute.name == name) return attribute.otherwise;
  }
  fail(operation_->name, " has no attribute '", name, "'");
}

bool Call::flag(const std::string& name) const {
  const std::string& value = word(name);
  LONGHAND_CHECK(value == "0" || value == "1", operation_->name, ": attribute ", name,
                 ": expected 0 or 1, got '", value, "'");
  return value == "1";
}

std::int64_t Call::integer(const std::string& name) const {
  return parse<std::int64_t>(operation_->name, name, word(name), "an integer");
}

double Call::number(const std::string& name) const {
  return parse<double>(operation_->name, name, word(name), "a number");
}

Activation Call::activation(const std::string& name) const {
  const auto found = activation_from_name(word(name));
  LONGHAND_CHECK(found, operation_->name, ": attribute ", name, ": unknown activation '",
                 word(name), "'");
  return *found;
}

std::vector<Case> all_cases(const Operation& operation, Rng& rng) {
  std::vector<Case> cases = operation.cases(rng);
  if (operation.large) {
    for (Case& values : operation.large(rng)) cases.push_back(std::move(values));
  }
  return cases;
}

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = gather_all();
  return all;
}

const Operation& find(std::string_view name) {
  for (const Operation& operation : operations()) {
    if (operation.name == name) return operation;
  }
  LONGHAND_CHECK(!activation_from_name(name), "there is no op ", quote(name),
                 "; use the op activate with the attribute f=", name);
  std::vector<std::string> known;
  for (const Operation& operation : operations()) known.push_back(operation.name);
  fail("there is no op ", quote(name),
       did_you_mean(name, known, "; `longhand op list` lists them"));
}

Call prepare(const Operation& operation, const Case& values, Backend& backend, DType activations,
             bool gradients) {
  std::map<std::string, Var> inputs;
  for (const Argument& argument : operation.inputs) {
    const auto found = values.inputs.find(argument.name);
    if (found == values.inputs.end()) continue;
    const DType type = type_of(argument.role, activations);
    inputs.emplace(argument.name,
                   Var(Tensor::from(backend, found->second.shape, type, found->second.values),
                       gradients && argument.differentiable && is_float(type)));
  }
  return Call(operation, backend, activations, std::move(inputs), values.attributes);
}

HostTensor normals(Rng& rng, const Shape& shape, double deviation, double mean) {
  HostTensor host{shape, std::vector<double>(static_cast<std::size_t>(shape.size()))};
  for (double& value : host.values) value = mean + deviation * rng.normal();
  return host;
}

HostTensor uniforms(Rng& rng, const Shape& shape, double low, double high) {
  HostTensor host{shape, std::vector<double>(static_cast<std::size_t>(shape.size()))};
  for (double& value : host.values) value = low + (high - low) * rng.uniform();
  return host;
}

HostTensor integers(Rng& rng, const Shape& shape, int low, int high) {
  HostTensor host{shape, std::vector<double>(static_cast<std::size_t>(shape.size()))};
  for (double& value : host.values) {
    value = low + static_cast<int>(rng.below(static_cast<std::uint32_t>(high - low + 1)));
  }
  return host;
}

HostTensor constant(const Shape& shape, double value) {
  return {shape, std::vector<double>(static_cast<std::size_t>(shape.size()), value)};
}

}  // namespace longhand::catalog
