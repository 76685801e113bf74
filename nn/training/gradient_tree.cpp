#include "nn/training/gradient_tree.h"

#include <utility>

namespace longhand::nn {

GradientTree::GradientTree(const Parameters& parameters) : parameters_(parameters) {}

void GradientTree::push() {
  Gradients gradients;
  for (const Parameter& p : parameters_.all()) gradients.push_back(p.var().grad());
  parameters_.clear_gradients();
  tree_.push(std::move(gradients));
}

void GradientTree::put_sum() {
  const Gradients sum = tree_.take();
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (sum[i]) parameters_.all()[i].var().sink().add(sum[i]);
  }
}

GradientTree::Gradients GradientTree::Add::operator()(Gradients a, Gradients b) const {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!b[i]) continue;
    if (!a[i]) {
      a[i] = std::move(b[i]);
      continue;
    }
    // Two parameters may have one tensor for their gradients, as the terms of a sum do.
    const Tensor sum = a[i].sole() ? a[i] : empty_like(a[i]);
    sum.backend()(Combine{.f = Combination::sum, .a = a[i], .b = b[i], .y = sum});
    a[i] = sum;
    b[i] = Tensor();
  }
  return a;
}

Tensor sum_over_ranks(Communicator& ranks, const Parameters& parameters, const Tensor& losses) {
  if (ranks.size() == 1) return losses;
  // Which parameters have a gradient, here and on any rank.
  const std::size_t count = parameters.all().size();
  std::vector<std::byte> here(count);
  for (std::size_t i = 0; i < count; ++i) {
    here[i] = std::byte{parameters.all()[i].var().grad() ? std::uint8_t{1} : std::uint8_t{0}};
  }
  const std::vector<std::byte> all = ranks.gather(std::span<const std::byte>(here));
  std::vector<Tensor> sums;
  for (std::size_t i = 0; i < count; ++i) {
    bool anywhere = false;
    for (std::size_t at = i; at < all.size(); at += count) {
      anywhere = anywhere || all[at] != std::byte{0};
    }
    if (!anywhere) continue;
    const Var& var = parameters.all()[i].var();
    if (here[i] == std::byte{0}) {  // x + -0 is x for every x; x + 0 is not, for -0
      const Tensor nothing = empty_like(var.value());
      nothing.backend()(Fill{.value = -0.0, .y = nothing});
      var.sink().add(nothing);
    }
    sums.push_back(var.sink().sum_in_place());
  }
  // A loss of any rank that is not finite makes the sum so.
  const Tensor sum = Tensor::zeros(parameters.backend(), {1}, parameters.type());
  if (losses.size() > 0) {
    sum.backend()(
        Reduce{.reduction = Reduction::sum, .x = losses.reshape({1, losses.size()}), .y = sum});
  }
  sums.push_back(sum);
  ranks.sum(sums);
  return sum;
}

}  // namespace longhand::nn
