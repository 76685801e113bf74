#pragma once

#include <cstdint>
#include <vector>

#include "nn/module.h"
#include "nn/ranks/communicator.h"
#include "nn/ranks/tree.h"

namespace longhand::nn {

/// Adds up the gradients of a step's parts in their binary tree (nn/ranks/tree.h). A parameter that
/// a part does not reach has no gradient there, which adds nothing: not even a zero, whose sign
/// would be one more thing that could depend on where parts are added.
class GradientTree {
 public:
  explicit GradientTree(const Parameters& parameters);

  /// Takes the parameters' gradients as those of the next part.
  void push();
  /// After a power of two of parts: the parameters' gradients are the sum.
  void put_sum();

 private:
  using Gradients = std::vector<Tensor>;  // one for each parameter, maybe empty
  struct Add {
    Gradients operator()(Gradients a, Gradients b) const;
  };

  const Parameters& parameters_;
  Tree<Gradients, Add> tree_{Add()};
};

/// Adds up the parameters' gradients over the ranks. Returns the losses' sum over all ranks, [1];
/// where there is one rank, the losses.
Tensor sum_over_ranks(Communicator& ranks, const Parameters& parameters, const Tensor& losses);

}  // namespace longhand::nn
