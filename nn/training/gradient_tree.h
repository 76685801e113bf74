#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/tape.h"
#include "nn/module.h"
#include "nn/ranks/communicator.h"
#include "nn/ranks/tree.h"

namespace longhand::nn {

/// Sums the gradients of a step's parts in a binary tree (nn/ranks/tree.h). Each gradient is added
/// as soon as the backward pass completes it, while it is still in the CPU's caches. If a part does
/// not use a parameter, nothing is added to the parameter's sum. Adding 0 instead could change a
/// sum of -0 to 0.
class GradientTree {
 public:
  /// Called once per parameter, with its index and the sum of its gradients over all parts. The sum
  /// may be empty.
  using Summed = std::function<void(std::size_t parameter, Tensor sum)>;

  /// `parts` must be a power of two. Without `summed`, the call of end_part() after the last part
  /// stores the sums as the parameters' gradients.
  GradientTree(const Parameters& parameters, std::int64_t parts, Summed summed = {});

  /// Must be called for the last batch of each part, before this batch is recorded, with the tape
  /// that will record it.
  void watch(Tape& tape);
  /// Must be called after each part. Adds the gradients that are not yet added.
  void end_part();

 private:
  struct Add {
    Tensor operator()(Tensor a, Tensor b) const;
  };
  void take(std::size_t parameter);

  const Parameters& parameters_;
  // Number of parts of the step that are not finished, including the current part.
  std::int64_t left_;
  Summed summed_;
  std::vector<Tree<Tensor, Add>> trees_;  // one per parameter
  std::vector<bool> taken_;   // parameters whose gradient of the current part was already added
  std::vector<Tensor> sums_;  // the sums, if no callback receives them
};

/// Sums the parameters' gradients over the ranks. Must be called after the backward pass. Returns
/// the sum of the losses over all ranks, [1]. If there is only one rank, returns `losses`.
Tensor sum_over_ranks(Communicator& ranks, const Parameters& parameters, const Tensor& losses);

/// The sum of a rank's losses, [1]; 0 without losses. If a loss is not finite, the sum is not
/// finite either.
Tensor sum_of(const Parameters& parameters, const Tensor& losses);

}  // namespace longhand::nn
