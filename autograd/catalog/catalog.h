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

/// Describes every op of autograd/ once: its formula, its arguments and attributes, test cases, and
/// how to run it. `longhand op`, gradcheck and the parity tests use this table.
namespace longhand::catalog {

/// The role of an argument. Together with the type of the activations (f64, f32 or bf16), it
/// decides the type of the argument.
enum class Role {
  activation,  // has the type of the activations
  master,      // for parameters and statistics: f64 if activations are f64, otherwise f32
  index,       // has type i32
  weight,      // has the type of `master`, but is rounded to the activations' type when it is used
};
DType type_of(Role role, DType activations);

struct Argument {
  std::string name;
  std::string shape;  // shape in the symbols of Operation::formula, such as "[rows, n]"
  Role role = Role::activation;
  bool differentiable = true;
  bool optional = false;
};

struct Attribute {
  std::string name;
  std::string otherwise;  // default value
  std::string meaning;
};

/// Values on the host. Their element type is chosen when they are copied to a backend.
struct HostTensor {
  Shape shape;
  std::vector<double> values;
};

/// One set of arguments and attributes with which an op is run.
struct Case {
  std::map<std::string, HostTensor> inputs;
  std::map<std::string, std::string> attributes = {};
};

struct Operation;

/// The arguments and attributes of one run of an operation, by name.
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
  std::string page;     // page of docs/math that explains the op, without .md
  std::string formula;  // the formula in one line
  std::vector<Argument> inputs;
  std::vector<Attribute> attributes;
  std::vector<std::string> outputs;
  std::function<std::vector<Output>(const Call&)> run;
  /// Returns small random cases that together cover every branch, edge case and odd size. Input
  /// values are not near kinks of the op, where difference quotients would be wrong.
  std::function<std::vector<Case>(Rng&)> cases;
  /// True if the op contains matrix products, whose precision depends on the math mode.
  bool products = false;
  /// True if the op rounds rows of activations to integers of 8 bits in Math::fast
  /// (core/contract/blocks.h).
  bool rounds_rows = false;
  /// True if the op computes and stores in f32 even in faster math modes and with bf16 inputs.
  bool always_f32 = false;
  /// Returns further cases, on which backends are compared with each other. These cases are too
  /// large for difference quotients.
  std::function<std::vector<Case>(Rng&)> large = {};
  /// The backward pass may read sums that the forward pass saved after rounding, such as y. If a
  /// saved sum has the rounding error e, an entry of a gradient changes by at most error_terms * e.
  /// The tolerances in autograd/tolerance.h allow for this change.
  double error_terms = 1;
  /// Only for ops with attention heads: returns a case with one sequence of `tokens` tokens and
  /// normally distributed q, k and v. If `gate` is above 0 and the op has forget gates, every
  /// forget gate is `gate`.
  std::function<Case(Rng&, std::int64_t tokens, double gate)> of_length = {};
};

/// Returns all test cases of an op: those of Operation::cases, then those of Operation::large.
std::vector<Case> all_cases(const Operation& operation, Rng& rng);

/// The operations that one file of this folder defines. Each file NAME.cpp defines an object
/// NAME_family. The build generates families(), which lists these objects.
struct Family {
  std::vector<Operation> (*operations)();
};
std::span<const Family* const> families();

/// All operations of the catalog. The operations of one family (one file) are adjacent.
const std::vector<Operation>& operations();
// Returns the operation with this name. If there is none, throws an Error that suggests similar
// names.
const Operation& find(std::string_view name);

/// Copies the inputs of a case to a backend. If `gradients` is set, the differentiable inputs
/// require gradients.
Call prepare(const Operation& operation, const Case& values, Backend& backend, DType activations,
             bool gradients);

/// Functions that create input tensors for cases, with random or constant values.
HostTensor normals(Rng& rng, const Shape& shape, double deviation = 1, double mean = 0);
HostTensor uniforms(Rng& rng, const Shape& shape, double low, double high);
// Uniformly distributed integers from `low` to `high`, both included.
HostTensor integers(Rng& rng, const Shape& shape, int low, int high);
HostTensor constant(const Shape& shape, double value);

}  // namespace longhand::catalog
