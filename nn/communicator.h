#pragma once

#include <span>

#include "core/tensor.h"

namespace longhand::nn {

/// The ranks that train one model together. Each holds all parameters, draws its own parts of every
/// batch and adds up gradients with the others; rank 0 writes the files.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Every tensor, and every number, becomes its sum over the ranks.
  virtual void sum(std::span<const Tensor> tensors) = 0;
  virtual void sum(std::span<double> numbers) = 0;
};

/// One rank: every sum is what it was.
Communicator& alone();

}  // namespace longhand::nn
