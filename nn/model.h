#pragma once

#include <functional>
#include <string>

#include "autograd/variable.h"
#include "core/backend.h"
#include "nn/input.h"
#include "nn/module.h"

namespace longhand::nn {

/// The mean loss of a batch and, when the task is a choice, the share of right answers.
struct Loss {
  Var value;         // [1]
  Tensor hits = {};  // [1] or empty
};

/// What can be trained: parameters, and a loss of a batch. A model's layers are its members, made
/// in scope():
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
  /// Initial values and what layers draw in training are a matter of the seed.
  Model(Backend& backend, std::uint64_t seed, Storage storage = {})
      : parameters_(backend, storage, seed) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Parameters& parameters() const { return parameters_; }
  Backend& backend() const { return parameters_.backend(); }
  /// Called before loss() for sequences of up to `longest` tokens: checks that the model can read
  /// them, and makes the tables in which it looks positions up, for all up to the next power of
  /// two. What was made stays: recorded steps go on reading it.
  virtual void prepare(std::int64_t /*longest*/) {}
  /// Operations on the batch's and the parameters' tensors alone, the same ones for every batch of
  /// a shape: a trainer may have them recorded, and repeated without asking again (Repeat in
  /// core/backend.h).
  virtual Loss loss(const PlacedBatch& batch) = 0;
  /// The same of a batch on the host; its `value.value().item()` is the number.
  Loss loss_of(const Batch& batch) {
    const PlacedBatch placed = place(backend(), batch, parameters().type());
    prepare(placed.input.longest);
    return loss(placed);
  }

  /// Whether loss() does the same operations for every batch of a shape; else no step is recorded.
  virtual bool repeats() const { return true; }
  /// Whether that is so, the backend can record it, and nobody looks at the operations from within.
  bool recordable() const {
    const Backend& on = backend();
    return on.repeats() && repeats() && !watch && !on.observer && !on.options().checked;
  }

  /// Told every activation with its name, in the order of computation, when set.
  std::function<void(const std::string& name, const Tensor& x)> watch;

 protected:
  Scope scope() { return parameters_; }

 private:
  Parameters parameters_;
};

}  // namespace longhand::nn
