#pragma once

#include <functional>
#include <string>

#include "autograd/variable.h"
#include "nn/input.h"
#include "nn/module.h"

namespace longhand::nn {

/// The mean loss of a batch and, when the task is a choice, the share of right answers.
struct Loss {
  Var value;         // [1]
  Tensor hits = {};  // [1] or empty
};

/// What a trainer needs of a model.
class Model {
 public:
  virtual ~Model() = default;

  virtual const Parameters& parameters() const = 0;
  /// Called before loss() for sequences of up to `longest` tokens: checks that the model can read
  /// them, and makes the tables in which it looks positions up, for all up to the next power of
  /// two. What was made stays: recorded steps go on reading it.
  virtual void prepare(std::int64_t /*longest*/) {}
  /// Operations on the batch's and the parameters' tensors alone, the same ones for every batch of
  /// a shape: a trainer may have them recorded, and repeated without asking again (Repeat in
  /// core/backend.h).
  virtual Loss loss(const PlacedBatch& batch) = 0;
  /// Of a batch on the host.
  Loss loss(const Batch& batch) {
    const PlacedBatch placed = place(parameters().backend(), batch, parameters().type());
    prepare(placed.input.longest);
    return loss(placed);
  }

  /// Told every activation with its name, in the order of computation, when set.
  std::function<void(const std::string& name, const Tensor& x)> watch;
};

}  // namespace longhand::nn
