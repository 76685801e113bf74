#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/variable.h"
#include "core/rng.h"
#include "nn/noise.h"

namespace longhand::nn {

/// What a parameter holds at first: one value everywhere, or normal numbers around it.
struct Initial {
  double mean = 0;
  double deviation = 0;
};
inline Initial constant(double value) { return {value, 0}; }
inline Initial normal(double deviation) { return {0, deviation}; }

/// Rows first .. first + count - 1 of a parameter: entries along its first axis.
struct Rows {
  std::int64_t first = 0, count = 0;
};

/// A named value that training changes. Copies are the same parameter: the layer that uses it and
/// the model's list both hold one, and freezing it in one place holds everywhere.
class Parameter {
 public:
  Parameter() = default;

  explicit operator bool() const { return state_ != nullptr; }
  operator const Var&() const { return var(); }  // NOLINT: a layer hands it to ops as it is
  const Var& var() const;                        // empty when there is no parameter
  const std::string& name() const { return state_->name; }
  const Tensor& value() const { return state_->var.value(); }
  bool decays() const { return state_->decays; }  // weight decay is for matrices

  bool frozen() const { return !state_->var.wants_grad(); }
  /// A frozen parameter gets no gradient and no optimizer step.
  void freeze(bool frozen = true) const;
  /// Only these rows learn, from the next optimizer on; no bit of the others changes. They ascend
  /// and are apart.
  void learn_only(std::vector<Rows> rows) const;
  const std::vector<Rows>& learning_rows() const { return state_->rows; }  // empty: all of it
  std::int64_t learning() const;                                           // how many numbers learn
  friend bool operator==(const Parameter&, const Parameter&) = default;    // the same one

 private:
  friend class Parameters;
  struct State {
    std::string name;
    Var var;
    bool decays;
    std::vector<Rows> rows = {};
  };
  std::shared_ptr<State> state_;
};

/// Whether the backend has tensors of that type.
bool supports(const Backend& backend, DType type);

/// How a model's numbers are held.
struct Storage {
  DType type = DType::f32;  // what training changes: f32 or f64
  /// bf16, beside f32: matrices take half the room, and get no gradient.
  std::optional<DType> matrices = {};
  /// false: parameters are not set at first, since a file has their values.
  bool initial = true;
};

/// All parameters of a model, in the order they were made. Names are unique.
class Parameters {
 public:
  Parameters(Backend& backend, Storage storage, std::uint64_t seed);

  /// Initial values are a pure function of (seed, name, shape, initial): another model option does
  /// not change them, nor does the backend or the number of threads. The name is the released one
  /// (nn/released_names.h).
  /// With `learns_beside_bf16` a matrix is of the other numbers' type whatever matrices are.
  Parameter add(const std::string& name, const Shape& shape, Initial initial, bool decays,
                bool learns_beside_bf16 = false);

  std::span<const Parameter> all() const { return all_; }
  const Parameter* find(std::string_view name) const;  // null where there is none
  /// Those of a scope: "blocks.0" has blocks.0.mixing.out.weight but not blocks.01.weight.
  std::vector<Parameter> under(std::string_view scope) const;
  std::int64_t count() const;  // of numbers, in all parameters
  void clear_gradients() const;

  Backend& backend() const { return *backend_; }
  DType type() const { return storage_.type; }
  /// What layers draw from in training.
  const std::shared_ptr<Noise>& noise() const { return noise_; }

 private:
  std::shared_ptr<Backend> backend_;
  Storage storage_;
  std::uint64_t seed_;
  std::vector<Parameter> all_;
  std::shared_ptr<Noise> noise_;
};

/// A place in the tree of names: Scope(parameters) / "layers" / 0 / "mlp" makes parameters whose
/// names begin with "layers.0.mlp.".
class Scope {
 public:
  Scope(Parameters& parameters, std::string name = {})  // NOLINT
      : parameters_(&parameters), name_(std::move(name)) {}

  Scope operator/(std::string_view part) const;
  Scope operator/(std::int64_t index) const { return *this / std::to_string(index); }

  Parameter add(std::string_view leaf, const Shape& shape, Initial initial, bool decays,
                bool learns_beside_bf16 = false) const;
  const std::string& name() const { return name_; }
  const Parameters& parameters() const { return *parameters_; }

 private:
  Parameters* parameters_;
  std::string name_;
};

}  // namespace longhand::nn
