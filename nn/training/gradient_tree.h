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
/// as soon as backward completes it, while it is in the processor's caches. If a part does not use
/// a parameter, there is no gradient to add. A zero is not added in its place, because it could
/// change the sign of a zero sum; the result would then depend on the order of parts.
class GradientTree {
 public:
  /// Called once per parameter with its index and its sum over all parts, which may be empty.
  using Summed = std::function<void(std::size_t parameter, Tensor sum)>;

  /// `parts` must be a power of two. Without `summed`, the sums are finally stored as the
  /// parameters' gradients.
  GradientTree(const Parameters& parameters, std::int64_t parts, Summed summed = {});

  /// Must be called before the last batch of a part is recorded on the tape.
  void watch(Tape& tape);
  /// Must be called after each part. Adds the gradients that were not yet added.
  void end_part();

 private:
  struct Add {
    Tensor operator()(Tensor a, Tensor b) const;
  };
  void take(std::size_t parameter);

  const Parameters& parameters_;
  std::int64_t left_;  // number of parts left, including the current one
  Summed summed_;
  std::vector<Tree<Tensor, Add>> trees_;  // one per parameter
  std::vector<bool> taken_;   // parameters whose gradient of the current part was already added
  std::vector<Tensor> sums_;  // the sums, if there is no callback that receives them
};

/// Sums the parameters' gradients over the ranks, after backward. Returns the sum of the losses
/// over all ranks, [1]; with a single rank, the losses themselves.
Tensor sum_over_ranks(Communicator& ranks, const Parameters& parameters, const Tensor& losses);

/// The sum of a rank's losses, [1]; 0 if there are none. NaN or infinite losses make it NaN or
/// infinite.
Tensor sum_of(const Parameters& parameters, const Tensor& losses);

}  // namespace longhand::nn
