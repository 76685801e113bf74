#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/tape.h"
#include "nn/module.h"
#include "nn/ranks/communicator.h"
#include "nn/ranks/tree.h"

namespace longhand::nn {

/// Adds up the gradients of a step's parts in their binary tree (nn/ranks/tree.h): each parameter's
/// as soon as backward has it, while it is in the processor's caches and the rest of backward is
/// still to come. A parameter that a part does not reach has no gradient there, which adds nothing:
/// not even a zero, whose sign would be one more thing that could depend on where parts are added.
class GradientTree {
 public:
  /// Called once for each parameter with its number and the sum over all parts, maybe empty.
  using Summed = std::function<void(std::size_t parameter, Tensor sum)>;

  /// parts: a power of two. Without `summed` the sums are in the parameters' gradients at the end.
  GradientTree(const Parameters& parameters, std::int64_t parts, Summed summed = {});

  /// Before the last batch of a part is recorded.
  void watch(Tape& tape);
  /// After each part: takes the gradients that are left as that part's.
  void end_part();

 private:
  struct Add {
    Tensor operator()(Tensor a, Tensor b) const;
  };
  void take(std::size_t parameter);

  const Parameters& parameters_;
  std::int64_t left_;  // parts, the one that is computed included
  Summed summed_;
  std::vector<Tree<Tensor, Add>> trees_;  // one for each parameter
  std::vector<bool> taken_;               // of the part that is computed
  std::vector<Tensor> sums_;              // where nobody else wants them
};

/// Adds up the parameters' gradients over the ranks, after backward. Returns the losses' sum over
/// all ranks, [1]; where there is one rank, the losses.
Tensor sum_over_ranks(Communicator& ranks, const Parameters& parameters, const Tensor& losses);

/// The sum of a rank's losses, [1], zero for none: where one is not finite it is not either.
Tensor sum_of(const Parameters& parameters, const Tensor& losses);

}  // namespace longhand::nn
