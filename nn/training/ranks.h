#pragma once

#include <span>

#include "nn/module.h"

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

/// Adds up the parameters' gradients over the ranks. Returns the losses' sum over all ranks, [1];
/// where there is one rank, the losses.
Tensor sum_over_ranks(Communicator& ranks, const Parameters& parameters, const Tensor& losses);

}  // namespace longhand::nn
