#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/variable.h"
#include "core/formulas.h"
#include "core/rng.h"

/// Describes every op of autograd/ once: its formula, its arguments and attributes, how to run it,
/// and test cases. `longhand op`, gradcheck and the parity tests all use this table.
namespace longhand::catalog {

/// How the type of an argument depends on the type of the activations, which is f64, f32 or bf16.
enum class Role {
  activation,  // has the type of the activations
  master,      // f64 if activations are f64, otherwise f32; for parameters and statistics
  index,       // has type i32
  weight,  // type as for `master`; the value is rounded to the activations' type when it is used
};
DType type_of(Role role, DType activations);

struct Argument {
  std::string name;
  std::string shape;  // in the symbols of the formula, such as "[rows, n]"
  Role role = Role::activation;
  bool differentiable = true;
  bool optional = false;
};

struct Attribute {
  std::string name;
  std::string otherwise;  // default value
  std::string meaning;
};

/// Values on the host. Their type is chosen when they are used.
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

/// The arguments of one run of an operation, found by name.
class Call {
 public:
  Call(const Operation& operation, Backend& backend, DType activations,
       std::map<std::string, Var> inputs, std::map<std::string, std::string> attributes);

  Backend& backend() const { return *backend_; }
  DType activations() const { return activations_; }
  const Var& in(const std::string& name) const;  // throws an Error if the argument is missing
  Var maybe(const std::string& name) const;      // empty if the argument is missing
  bool flag(const std::string& name) const;      // value of an attribute that is 0 or 1
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
  std::string page;     // name of its page in docs/math, without .md
  std::string formula;  // the formula in one line
  std::vector<Argument> inputs;
  std::vector<Attribute> attributes;
  std::vector<std::string> outputs;
  std::function<std::vector<Output>(const Call&)> run;
  /// Small random cases that cover every branch, edge case and odd size. Values are not near kinks,
  /// so that difference quotients are meaningful.
  std::function<std::vector<Case>(Rng&)> cases;
  /// True if the op contains matrix products, whose precision depends on the math mode.
  bool products = false;
  /// True if the op computes and stores in f32 whatever the math mode and the type of its inputs.
  bool always_f32 = false;
  /// Further cases, too large for difference quotients, on which backends are compared.
  std::function<std::vector<Case>(Rng&)> large = {};
  /// The maximum number of rounding errors of one saved sum that add up in an entry of a gradient.
  double error_terms = 1;
  /// Only for ops with heads: a case of one sequence of `tokens` tokens with normal q, k and v. If
  /// `gate` is above 0 and the op can forget, all gates have this value.
  std::function<Case(Rng&, std::int64_t tokens, double gate)> of_length = {};
};

/// The results of `cases`, then those of `large`.
std::vector<Case> all_cases(const Operation& operation, Rng& rng);

/// The operations that one file of this folder defines: NAME.cpp defines NAME_family. The build
/// collects the list of families.
struct Family {
  std::vector<Operation> (*operations)();
};
std::span<const Family* const> families();

/// All operations, family by family.
const std::vector<Operation>& operations();
// an unknown name throws an Error that suggests similar names
const Operation& find(std::string_view name);

/// Copies a case's inputs to a backend. If `gradients`, the differentiable inputs require
/// gradients.
Call prepare(const Operation& operation, const Case& values, Backend& backend, DType activations,
             bool gradients);

/// Helpers for creating cases.
HostTensor normals(Rng& rng, const Shape& shape, double deviation = 1, double mean = 0);
HostTensor uniforms(Rng& rng, const Shape& shape, double low, double high);
// Uniformly drawn integers from `low` to `high`, both included.
HostTensor integers(Rng& rng, const Shape& shape, int low, int high);
HostTensor constant(const Shape& shape, double value);

}  // namespace longhand::catalog
