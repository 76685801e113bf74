#pragma once

#include <functional>
#include <string>

#include "autograd/variable.h"
#include "nn/batch.h"
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
  virtual Loss loss(const Batch& batch) = 0;

  /// Told every activation with its name, in the order of computation, when set.
  std::function<void(const std::string& name, const Tensor& x)> watch;
};

}  // namespace longhand::nn
