#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/tape.h"
#include "nn/module.h"
#include "nn/ranks/communicator.h"
#include "nn/ranks/tree.h"

namespace longhand::nn {

/// Sums the gradients of a step's parts in their binary tree (nn/ranks/tree.h). Each gradient is
/// added as soon as backward completes it, while it is in the processor's caches. A parameter that
/// a part does not use has no gradient there and adds nothing. Adding a zero could change the sign
/// of a zero sum, which would then depend on where parts are added.
class GradientTree {
 public:
  /// Called once per parameter with its number and the sum over all parts, which may be empty.
  using Summed = std::function<void(std::size_t parameter, Tensor sum)>;

  /// `parts` is a power of two. Without `summed`, the sums become the parameters' gradients at the
  /// end.
  GradientTree(const Parameters& parameters, std::int64_t parts, Summed summed = {});

  /// Call before the last batch of a part is recorded.
  void watch(Tape& tape);
  /// Call after each part. Takes the remaining gradients as those of this part.
  void end_part();

 private:
  struct Add {
    Tensor operator()(Tensor a, Tensor b) const;
  };
  void take(std::size_t parameter);

  const Parameters& parameters_;
  std::int64_t left_;  // parts left, including the current one
  Summed summed_;
  std::vector<Tree<Tensor, Add>> trees_;  // one per parameter
  std::vector<bool> taken_;               // parameters of the current part that were taken
  std::vector<Tensor> sums_;              // used if no callback receives the sums
};

/// Sums the parameters' gradients over the ranks, after backward. Returns the sum of the losses
/// over all ranks, [1]; with one rank, the losses.
Tensor sum_over_ranks(Communicator& ranks, const Parameters& parameters, const Tensor& losses);

/// The sum of a rank's losses, [1]; 0 if there are none, and not finite if one of them is not.
Tensor sum_of(const Parameters& parameters, const Tensor& losses);

}  // namespace longhand::nn
