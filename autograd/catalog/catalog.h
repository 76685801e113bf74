#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/variable.h"
#include "core/rng.h"

/// Every op of autograd/ described once: its formula, arguments, attributes, how to run it and on
/// which cases to test it. `longhand op`, gradcheck and the parity tests all walk this table.
namespace longhand::catalog {

/// What type an argument has when activations are f64, f32 or bf16.
enum class Role {
  activation,  // that type
  master,      // f64 with f64, else f32: parameters, statistics
  index,       // i32
  weight,      // as master, and rounded like an activation where it is used
};
DType type_of(Role role, DType activations);

struct Argument {
  std::string name;
  std::string shape;  // in the formula's symbols, e.g. "[rows, n]"
  Role role = Role::activation;
  bool differentiable = true;
  bool optional = false;
};

struct Attribute {
  std::string name;
  std::string otherwise;  // the default
  std::string meaning;
};

/// Values on the host, of no particular type yet.
struct HostTensor {
  Shape shape;
  std::vector<double> values;
};

/// One set of arguments and attributes.
struct Case {
  std::map<std::string, HostTensor> inputs;
  std::map<std::string, std::string> attributes = {};
};

struct Operation;

/// The arguments of one run, by name.
class Call {
 public:
  Call(const Operation& operation, Backend& backend, DType activations,
       std::map<std::string, Var> inputs, std::map<std::string, std::string> attributes);

  Backend& backend() const { return *backend_; }
  DType activations() const { return activations_; }
  const Var& in(const std::string& name) const;  // an Error if it is missing
  Var maybe(const std::string& name) const;      // empty if it is missing
  bool flag(const std::string& name) const;      // 0 or 1
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
  /// Small random cases with every branch, edge and odd size among them; the values of a case lie
  /// away from kinks, so that a difference quotient means something.
  std::function<std::vector<Case>(Rng&)> cases;
  bool products = false;  // it contains matrix products: the math mode decides its precision
  /// More cases, too large for difference quotients; backends are compared on them too.
  std::function<std::vector<Case>(Rng&)> large = {};
};

std::vector<Case> all_cases(const Operation& operation, Rng& rng);  // cases, then large

/// All of them, in the order of their families.
const std::vector<Operation>& operations();
const Operation& find(std::string_view name);  // an Error that lists near names

/// Puts a case's inputs on a backend; the differentiable ones want gradients when asked for.
Call prepare(const Operation& operation, const Case& values, Backend& backend, DType activations,
             bool gradients);

/// The parts of operations(), one a file of this folder.
std::vector<Operation> elementwise();
std::vector<Operation> dropout();
std::vector<Operation> matmul();
std::vector<Operation> feed_forward();
std::vector<Operation> norm();
std::vector<Operation> rope();
std::vector<Operation> gather();
std::vector<Operation> reduce();
std::vector<Operation> softmax();
std::vector<Operation> loss();
std::vector<Operation> triangle();
std::vector<Operation> optimizer();
std::vector<Operation> attention();
std::vector<Operation> fal();
std::vector<Operation> chacal();

/// Helpers for cases.
HostTensor normals(Rng& rng, const Shape& shape, double deviation = 1, double mean = 0);
HostTensor uniforms(Rng& rng, const Shape& shape, double low, double high);
HostTensor integers(Rng& rng, const Shape& shape, int low, int high);  // both ends included
HostTensor constant(const Shape& shape, double value);

}  // namespace longhand::catalog
