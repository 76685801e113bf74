#pragma once

#include <functional>
#include <string>

#include "autograd/variable.h"
#include "core/backend.h"
#include "nn/input.h"
#include "nn/module.h"

namespace longhand::nn {

/// The mean loss of a batch. If targets are choices, also the share of right answers.
struct Loss {
  Var value;         // [1]
  Tensor hits = {};  // [1] or empty
};

/// Something to train: parameters, and the loss of a batch. The layers of a model are its members,
/// made in scope():
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
  /// The seed determines initial values and the random numbers that layers draw in training.
  Model(Backend& backend, std::uint64_t seed, Storage storage = {})
      : parameters_(backend, storage, seed) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Parameters& parameters() const { return parameters_; }
  Backend& backend() const { return parameters_.backend(); }
  /// Called before loss() for sequences of up to `longest` tokens. Checks that the model can read
  /// them, and makes the tables of positions up to the next power of two. Older tables stay,
  /// because recorded steps still read them.
  virtual void prepare(std::int64_t /*longest*/) {}
  /// Uses only tensors of the batch and of the parameters, with the same operations for every batch
  /// of a shape. A trainer can therefore record the operations and repeat them without calling
  /// loss() again (Repeat in core/backend.h).
  virtual Loss loss(const PlacedBatch& batch) = 0;
  /// The loss of a batch on the host; `value.value().item()` is the number.
  Loss loss_of(const Batch& batch) {
    const PlacedBatch placed = place(backend(), batch, parameters().type());
    prepare(placed.input.longest);
    return loss(placed);
  }

  /// True if loss() uses the same operations for every batch of a shape. Otherwise no step is
  /// recorded.
  virtual bool repeats() const { return true; }
  /// True if repeats(), the backend can record, and no observer needs to see single operations.
  bool recordable() const {
    const Backend& on = backend();
    return on.repeats() && repeats() && !watch && !on.observer && !on.options().checked;
  }

  /// If set, called with every activation and its name, in the order of computation.
  std::function<void(const std::string& name, const Tensor& x)> watch;

 protected:
  Scope scope() { return parameters_; }

 private:
  Parameters parameters_;
};

}  // namespace longhand::nn
