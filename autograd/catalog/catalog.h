#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/variable.h"
#include "core/rng.h"

/// Describes every op of autograd/ once: its formula, its arguments and attributes, how to run it,
/// and cases to test it on. `longhand op`, gradcheck and the parity tests all read this table.
namespace longhand::catalog {

/// The rule by which an argument's type depends on that of the activations, which is f64, f32 or
/// bf16.
enum class Role {
  activation,  // the activations' type
  master,      // f64 when activations are f64, else f32: parameters, statistics
  index,       // always i32
  weight,      // as master, but rounded to the activations' type when it is used
};
DType type_of(Role role, DType activations);

struct Argument {
  std::string name;
  std::string shape;  // in the formula's symbols, such as "[rows, n]"
  Role role = Role::activation;
  bool differentiable = true;
  bool optional = false;
};

struct Attribute {
  std::string name;
  std::string otherwise;  // the default
  std::string meaning;
};

/// Values on the host whose type is chosen later.
struct HostTensor {
  Shape shape;
  std::vector<double> values;
};

/// One choice of arguments and attributes.
struct Case {
  std::map<std::string, HostTensor> inputs;
  std::map<std::string, std::string> attributes = {};
};

struct Operation;

/// The arguments of one run, found by name.
class Call {
 public:
  Call(const Operation& operation, Backend& backend, DType activations,
       std::map<std::string, Var> inputs, std::map<std::string, std::string> attributes);

  Backend& backend() const { return *backend_; }
  DType activations() const { return activations_; }
  const Var& in(const std::string& name) const;  // throws if it is missing
  Var maybe(const std::string& name) const;      // an empty Var if it is missing
  bool flag(const std::string& name) const;      // an attribute that is 0 or 1
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& word(const std::string& name) const;
  Activation activation(const std::string& name) const;

 private:
  const Operation* operation_;
  Backend* backend_;
  DType activations_;
  std::map<std::string, Var> inputs_;
  std::map<std::string, std::string> attributes_;
};

struct Output {
  std::string name;
  Var value;
};

struct Operation {
  std::string name;
  std::string page;     // its page in docs/math, without .md
  std::string formula;  // one line
  std::vector<Argument> inputs;
  std::vector<Attribute> attributes;
  std::vector<std::string> outputs;
  std::function<std::vector<Output>(const Call&)> run;
  /// Small random cases that reach every branch, edge and odd size. Values keep away from kinks, so
  /// that difference quotients are meaningful.
  std::function<std::vector<Case>(Rng&)> cases;
  bool products = false;  // the op contains matrix products, so the math mode decides its precision
  /// More cases, too large for difference quotients, on which backends are compared.
  std::function<std::vector<Case>(Rng&)> large = {};
};

std::vector<Case> all_cases(const Operation& operation, Rng& rng);  // first `cases`, then `large`

/// The operations defined in one file of this folder: NAME.cpp defines NAME_family. The build
/// collects the list of files.
struct Family {
  std::vector<Operation> (*operations)();
};
std::span<const Family* const> families();

/// All operations, family by family.
const std::vector<Operation>& operations();
const Operation& find(std::string_view name);  // throws an Error that suggests similar names

/// Puts a case's inputs on a backend. With `gradients`, the differentiable inputs require
/// gradients.
Call prepare(const Operation& operation, const Case& values, Backend& backend, DType activations,
             bool gradients);

/// Helpers to make cases.
HostTensor normals(Rng& rng, const Shape& shape, double deviation = 1, double mean = 0);
HostTensor uniforms(Rng& rng, const Shape& shape, double low, double high);
// from low to high, both included
HostTensor integers(Rng& rng, const Shape& shape, int low, int high);
HostTensor constant(const Shape& shape, double value);

}  // namespace longhand::catalog
