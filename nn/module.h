#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/variable.h"
#include "core/block_matrix.h"
#include "core/rng.h"
#include "nn/noise.h"

namespace longhand::nn {

/// Initial values of a parameter: normally distributed random numbers with this mean and standard
/// deviation. With deviation 0, all values are equal to the mean.
struct Initial {
  double mean = 0;
  double deviation = 0;
};
inline Initial constant(double value) { return {value, 0}; }
inline Initial normal(double deviation) { return {0, deviation}; }

/// The rows first .. first + count - 1 of a parameter; rows are indices of its first axis.
struct Rows {
  std::int64_t first = 0, count = 0;
};

/// A named tensor that training changes. Copies of this object refer to the same parameter: a layer
/// and the model's list of parameters each have a copy, and freezing one copy freezes the
/// parameter.
///
/// A matrix may also be stored in blocks of rounded numbers (core/block_matrix.h). While it is in
/// blocks, it is frozen, and value() throws an Error. Only Linear and Embedding can use blocks.
class Parameter {
 public:
  Parameter() = default;

  explicit operator bool() const { return state_ != nullptr; }
  operator const Var&() const { return var(); }  // NOLINT: implicit, so that ops accept Parameters
  const Var& var() const;                        // empty for a default-constructed Parameter
  const std::string& name() const { return state_->name; }
  const Shape& shape() const { return state_->shape; }
  Backend& backend() const { return *state_->backend; }
  /// Throws an Error if the matrix is stored in blocks.
  const Tensor& value() const;
  /// The blocks of the matrix; empty if it is not stored in blocks.
  const BlockMatrix& blocks() const { return state_->blocks; }
  /// Replaces the value by blocks. Throws an Error unless accept_blocks() was called.
  void put(BlockMatrix blocks) const;
  /// Declares that the parameter's layer can use blocks. Linear and Embedding call this function.
  void accept_blocks() const { state_->accepts_blocks = true; }
  bool accepts_blocks() const { return state_->accepts_blocks; }
  /// Replaces the value, or the blocks, by a tensor of this type with undefined contents.
  void allocate(DType type) const;
  /// The size of the value or of the blocks. If the value will be read from a file and has no
  /// memory yet (Storage::deferred), counts one byte per number.
  std::size_t bytes() const;
  /// True if weight decay applies to this parameter, usually a matrix.
  bool decays() const { return state_->decays; }

  bool frozen() const { return !state_->var.wants_grad(); }
  /// A frozen parameter has no gradient and is not updated by the optimizer.
  void freeze(bool frozen = true) const;
  /// Restricts training of this parameter to `rows`. All other rows keep their values. The
  /// ranges of rows must be ascending and disjoint. Only optimizers created after this call follow
  /// the restriction.
  void learn_only(std::vector<Rows> rows) const;
  // The rows that training changes; empty: all rows.
  const std::vector<Rows>& learning_rows() const { return state_->rows; }
  std::int64_t learning() const;  // number of trained entries
  // True if both refer to the same parameter.
  friend bool operator==(const Parameter&, const Parameter&) = default;

  /// Name of the layer that has this parameter: name() up to its last dot.
  std::string layer() const { return name().substr(0, name().rfind('.')); }
  /// Throws an Error unless the last axis of x has `columns` entries. The message names this
  /// parameter's layer.
  void require_columns(const Var& x, std::int64_t columns) const;

 private:
  friend class Parameters;
  struct State {
    std::string name;
    Backend* backend;  // kept alive by Parameters and by the tensors
    Shape shape;
    Var var;
    bool decays;
    Initial initial;
    std::vector<Rows> rows = {};
    BlockMatrix blocks = {};
    bool accepts_blocks = false;
  };
  std::shared_ptr<State> state_;
};

/// A named tensor that is saved with the parameters but has no gradient, such as a running mean. In
/// training, a forward pass only proposes the next value. Optimizer::step() assigns this value when
/// it updates the parameters. If the training step is interrupted before then, or if a loss or the
/// norm of the gradients is not finite, neither parameters nor buffers change. Copies of this
/// object refer to the same buffer.
class Buffer {
 public:
  Buffer() = default;

  explicit operator bool() const { return state_ != nullptr; }
  const std::string& name() const { return state_->name; }
  const Tensor& value() const { return state_->value; }
  /// Returns the value that was proposed last in this step, or value() if none was proposed. The
  /// next batch of the step computes its proposal from the returned value.
  const Tensor& latest() const { return state_->next ? state_->next : state_->value; }
  void propose(const Tensor& next) const { state_->next = next; }
  void drop_proposed() const { state_->next = {}; }
  /// Assigns the proposed value, if any, unless `factor` is 0. `factor` is a tensor [1] that
  /// contains the optimizer's factor for clipping gradients. It is 0 if the norm of the gradients
  /// or a loss is not finite (GlobalNorm in core/contract/optimizer.h).
  void assign_proposed(const Tensor& factor) const;

 private:
  friend class Parameters;
  struct State {
    std::string name;
    Tensor value, next = {};
  };
  std::shared_ptr<State> state_;
};

bool supports(const Backend& backend, DType type);

/// The types in which a model's parameters are stored.
struct Storage {
  DType type = DType::f32;  // type of trained parameters: f32 or f64
  /// Type of matrices; default: `type`. bf16 matrices of an f32 model need half the memory and
  /// cannot be trained.
  std::optional<DType> matrices = {};
  /// If false, parameters are not initialized, because they will be read from a file.
  bool initial = true;
  /// If true, matrices have no memory until they are read from a file, which decides whether they
  /// are stored in blocks (Parameter::put).
  bool deferred = false;
};

/// All parameters and buffers of a model, in the order of creation. Names are unique.
class Parameters {
 public:
  Parameters(Backend& backend, Storage storage, std::uint64_t seed);

  /// Adds a parameter. Its initial values depend only on the seed, the name, the shape and
  /// `initial`. They do not depend on the model's other options, on the backend or on the number of
  /// threads. A parameter that had another name in version 0.1 is initialized as if it still had
  /// that name (nn/released_names.h). By default, a matrix has the type Storage::matrices, and it
  /// cannot be trained if this type is bf16. With `learns_beside_bf16`, the matrix has the type
  /// type() instead and can be trained.
  Parameter add(const std::string& name, const Shape& shape, Initial initial, bool decays,
                bool learns_beside_bf16 = false);

  /// Adds a buffer of the type type(). All of its entries are `initial`.
  Buffer add_buffer(const std::string& name, const Shape& shape, double initial);

  /// Sets a parameter to its initial values. add() does this too, unless Storage::initial is false.
  void initialize(const Parameter& parameter) const;

  std::span<const Parameter> all() const { return all_; }
  std::span<const Buffer> buffers() const { return buffers_; }
  const Parameter* find(std::string_view name) const;  // null if there is no such parameter
  /// The parameters whose names begin with `scope` and a dot. For example, "blocks.0" selects
  /// blocks.0.mixing.out.weight, but not blocks.01.weight. Throws an Error if there are none.
  std::vector<Parameter> under(std::string_view scope) const;
  std::int64_t count() const;  // number of entries of all parameters
  /// Rounds matrices to blocks of this type if their layers accept blocks. Matrices that are
  /// already in blocks of any type, or whose rows are not whole blocks, stay as they are. Returns
  /// the number of matrices that are in blocks afterwards.
  std::int64_t put_in_blocks(const GgufType& type) const;
  /// Allocates the matrices that have no memory yet (Storage::deferred). They become blocks of this
  /// type with undefined contents, or tensors if their layer does not accept blocks or their rows
  /// are not whole blocks.
  void allocate_deferred(const GgufType& type) const;
  /// Decodes all blocks to tensors of the type type().
  void decode_blocks() const;
  /// Also drops the proposed values of buffers.
  void clear_gradients() const;

  Backend& backend() const { return *backend_; }
  DType type() const { return storage_.type; }
  /// The random numbers that layers use in training, for example for dropout. Layers also read from
  /// this object whether the current pass is part of training.
  const std::shared_ptr<Noise>& noise() const { return noise_; }

 private:
  void require_new(const std::string& name) const;

  std::shared_ptr<Backend> backend_;
  Storage storage_;
  std::uint64_t seed_;
  std::vector<Parameter> all_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<Noise> noise_;
};

/// A prefix of parameter names: Scope(parameters) / "layers" / 0 / "mlp" creates parameters whose
/// names begin with "layers.0.mlp.".
class Scope {
 public:
  Scope(Parameters& parameters, std::string name = {})  // NOLINT
      : parameters_(&parameters), name_(std::move(name)) {}

  Scope operator/(std::string_view part) const;
  Scope operator/(std::int64_t index) const { return *this / std::to_string(index); }

  Parameter add(std::string_view leaf, const Shape& shape, Initial initial, bool decays,
                bool learns_beside_bf16 = false) const;
  Buffer add_buffer(std::string_view leaf, const Shape& shape, double initial) const;
  const std::string& name() const { return name_; }
  const Parameters& parameters() const { return *parameters_; }

 private:
  Parameters* parameters_;
  std::string name_;
};

}  // namespace longhand::nn
