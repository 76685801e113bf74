#include "apps/wasm/graph.h"

#include <array>
#include <functional>
#include <map>
#include <optional>

#include "autograd/combine.h"
#include "autograd/elementwise.h"
#include "autograd/tape.h"
#include "core/error.h"

namespace longhand::app {
namespace {

/// A number of the graph that is replaced by another value.
struct Change {
  std::string name;
  double value;
};

/// Called with the name of a number and the derivative of the loss with respect to it.
using Seen = std::function<void(const std::string& name, double derivative)>;

class Graph {
 public:
  Graph(const Json& inputs, const Json& steps) : inputs_(inputs), steps_(steps) {
    LONGHAND_CHECK(!steps.empty(), "steps: expected at least one operation, got none");
  }

  /// Computes all numbers. If `seen` is given, the backward pass of the tape that is recording will
  /// call it for each step on which the loss depends.
  std::map<std::string, Var> compute(const std::optional<Change>& change = {},
                                     const Seen& seen = {}) const {
    std::map<std::string, Var> numbers;
    const auto put = [&](const std::string& name, Var number) {
      if (change && change->name == name) number = make(change->value);
      LONGHAND_CHECK(numbers.emplace(name, std::move(number)).second,
                     "name: expected a different name for each input and each step, got ", name,
                     " twice");
    };
    for (const Json& input : inputs_) put(input["name"].string(), make(input["value"].number()));
    for (const Json& step : steps_) {
      const std::string& name = step["name"].string();
      const Var y = result(step, numbers);
      put(name, seen ? watched(y, name, seen) : y);
    }
    return numbers;
  }

  const std::string& loss() const { return steps_[steps_.size() - 1]["name"].string(); }

  double loss_with(const std::string& name, double value) const {
    return compute(Change{name, value}).at(loss()).value().item();
  }

 private:
  Var make(double value) const {
    return {Tensor::from(*backend_, {1}, DType::f64, std::array{value}), true};
  }

  static Var result(const Json& step, const std::map<std::string, Var>& numbers) {
    const std::string& op = step["op"].string();
    const auto operand = [&](std::size_t place) {
      const std::string& name = step["of"][place].string();
      const auto found = numbers.find(name);
      LONGHAND_CHECK(found != numbers.end(),
                     "of: expected names of inputs or of earlier steps, got ", name);
      return found->second;
    };
    if (op == "add") return add(operand(0), operand(1));
    if (op == "subtract") return subtract(operand(0), operand(1));
    if (op == "multiply") return multiply(operand(0), operand(1));
    if (op == "tanh") return activate(Activation::tanh, operand(0));
    if (op == "square") return multiply(operand(0), operand(0));
    fail("op: expected add, subtract, multiply, tanh or square, got ", op);
  }

  /// Returns a number equal to `y`. The backward pass calls `seen` with the derivative of the loss
  /// with respect to this number.
  static Var watched(const Var& y, const std::string& name, const Seen& seen) {
    return record("watched", {&y}, y.value(), [sink = y.sink(), name, seen](const Tensor& dy) {
      seen(name, dy.item());
      sink.add(dy);
    });
  }

  const Json& inputs_;
  const Json& steps_;
  std::shared_ptr<Backend> backend_ = make_reference_backend();
};

}  // namespace

Json differentiate(const Json& inputs, const Json& steps) {
  const Graph graph(inputs, steps);
  Json values = Json::object(), walk = Json::array(), all = Json::array();
  std::map<std::string, double> derivatives;
  Tape tape;
  std::map<std::string, Var> numbers;
  {
    const Recording recording(tape);
    numbers = graph.compute({}, [&](const std::string& name, double derivative) {
      derivatives[name] = derivative;
      walk.push_back({{"name", name}, {"derivative", derivative}});
    });
  }
  tape.backward(numbers.at(graph.loss()));
  constexpr double h = 1e-5;
  for (const Json* list : {&inputs, &steps}) {
    for (const Json& one : *list) {
      const std::string& name = one["name"].string();
      const Var& number = numbers.at(name);
      const double value = number.value().item();
      if (list == &inputs) derivatives[name] = number.grad() ? number.grad().item() : 0;
      values[name] = value;
      const double quotient =
          (graph.loss_with(name, value + h) - graph.loss_with(name, value - h)) / (2 * h);
      all.push_back({{"name", name}, {"derivative", derivatives[name]}, {"quotient", quotient}});
    }
  }
  return {{"values", std::move(values)}, {"walk", std::move(walk)}, {"numbers", std::move(all)}};
}

}  // namespace longhand::app
