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
  Backend& backend = parameters.backend();
  std::vector<Tensor> sums;
  std::vector<const Var*> summed;
  std::vector<double> here;  // 1 for each parameter that has a gradient on this rank
  for (const Parameter& p : parameters.all()) {
    const Var& var = p.var();
    if (!var.wants_grad()) continue;
    here.push_back(var.grad() ? 1 : 0);
    if (!var.grad()) {  // x + -0 is x for every x; x + 0 is not, for -0
      const Tensor nothing = empty_like(var.value());
      backend(Fill{.value = -0.0, .y = nothing});
      var.sink().add(nothing);
    }
    summed.push_back(&var);
    sums.push_back(var.sink().sum_in_place());
  }
  const Tensor anywhere = Tensor::from(backend, {std::ssize(here)}, parameters.type(), here);
  sums.push_back(anywhere);
  // A loss of any rank that is not finite makes the sum so.
  const Tensor sum = Tensor::zeros(backend, {1}, parameters.type());
  if (losses.size() > 0) {
    backend(Reduce{.reduction = Reduction::sum, .x = losses.reshape({1, losses.size()}), .y = sum});
  }
  sums.push_back(sum);
  ranks.sum(sums);
  const std::vector<double> count = anywhere.to_doubles();
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (count[i] == 0) summed[i]->clear_grad();
  }
  return sum;
}

}  // namespace longhand::nn
