#pragma once

#include <functional>
#include <string>

#include "autograd/variable.h"
#include "core/backend.h"
#include "nn/input.h"
#include "nn/module.h"

namespace longhand::nn {

/// The mean loss of a batch and, if targets are classes, the share of right predictions.
struct Loss {
  Var value;         // the mean loss, [1]
  Tensor hits = {};  // share of right predictions, [1]; may be empty
};

/// A trainable model: it has parameters and computes the loss of a batch. Its layers are members
/// that are constructed with scope():
///
///   class Line final : public nn::Model {
///    public:
///     explicit Line(Backend& backend) : Model(backend, 1) {}
///     nn::Loss loss(const nn::PlacedBatch& batch) override {
///       return nn::squared_error(line(batch.features), batch);
///     }
///     nn::Linear line{scope() / "line", 1, 1};
///   };
class Model {
 public:
  /// The seed determines the initial values and the random numbers that layers use in training.
  Model(Backend& backend, std::uint64_t seed, Storage storage = {})
      : parameters_(backend, storage, seed) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Parameters& parameters() const { return parameters_; }
  Backend& backend() const { return parameters_.backend(); }
  /// Prepares the model for sequences of at most `longest` tokens. Must be called before loss().
  /// Throws an Error if the model does not support this length. Replaces position tables that have
  /// too few rows by larger ones. The old tables are kept because recorded steps still use them.
  virtual void prepare(std::int64_t /*longest*/) {}
  /// Computes the loss. A trainer may record the operations of this function and replay them for
  /// other batches of the same shape (Repeat in core/backend.h). The function must therefore use
  /// only tensors of the batch and of the parameters, and the same operations for all batches of
  /// one shape.
  virtual Loss loss(const PlacedBatch& batch) = 0;
  /// Copies a batch from the host to the backend, calls prepare() and returns the result of loss().
  /// With this result, `value.value().item()` is the loss as a number.
  Loss loss_of(const Batch& batch) {
    const PlacedBatch placed = place(backend(), batch, parameters().type());
    prepare(placed.input.longest);
    return loss(placed);
  }

  /// True if loss() uses the same operations for all batches of the same shape. If false, training
  /// steps are not recorded for replay.
  virtual bool repeats() const { return true; }
  /// True if steps can be recorded and replayed: repeats() is true, the backend supports recording
  /// and does not check attention scores for NaN and infinity (BackendOptions::checked), and
  /// neither the model nor the backend has an observer.
  bool recordable() const {
    const Backend& on = backend();
    return on.repeats() && repeats() && !watch && !on.observer && !on.options().checked;
  }

  /// If set, called with the name and value of every activation, in the order of computation.
  std::function<void(const std::string& name, const Tensor& x)> watch;

 protected:
  Scope scope() { return parameters_; }

 private:
  Parameters parameters_;
};

}  // namespace longhand::nn
