#include "nn/training/gradient_tree.h"

#include <utility>

#include "core/contract/combine.h"
#include "core/contract/elementwise.h"
#include "core/contract/reduce.h"
#include "core/error.h"

namespace longhand::nn {

GradientTree::GradientTree(const Parameters& parameters, std::int64_t parts, Summed summed)
    : parameters_(parameters),
      left_(parts),
      summed_(std::move(summed)),
      trees_(parameters.all().size(), Tree<Tensor, Add>(Add())),
      taken_(parameters.all().size()),
      sums_(parameters.all().size()) {}

void GradientTree::watch(Tape& tape) {
  std::vector<Sink> leaves;
  for (const Parameter& p : parameters_.all()) leaves.push_back(p.var().sink());
  tape.watch(leaves, [this](std::size_t parameter) { take(parameter); });
}

void GradientTree::take(std::size_t parameter) {
  const Var& var = parameters_.all()[parameter].var();
  Tensor gradient = var.grad();
  var.clear_grad();
  taken_[parameter] = true;
  trees_[parameter].push(std::move(gradient));
  if (left_ > 1) return;
  Tensor sum = trees_[parameter].take();
  if (summed_) {
    summed_(parameter, std::move(sum));
  } else {
    sums_[parameter] = std::move(sum);
  }
}

void GradientTree::end_part() {
  const auto all = parameters_.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!taken_[i]) take(i);
    LONGHAND_CHECK(!all[i].var().grad(), all[i].name(),
                   ": the gradient changed after the last operation that uses this parameter");
  }
  taken_.assign(all.size(), false);
  if (--left_ > 0) return;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (sums_[i]) all[i].var().sink().add(sums_[i]);
  }
}

Tensor GradientTree::Add::operator()(Tensor a, Tensor b) const {
  if (!b) return a;
  if (!a) return b;
  // Two parameters may share a gradient tensor, for example if they are added to each other. A
  // shared tensor is not overwritten.
  const Tensor sum = a.sole() ? a : b.sole() ? b : empty_like(a);
  sum.backend()(Combine{.f = Combination::sum, .a = a, .b = b, .y = sum});
  return sum;
}

Tensor sum_of(const Parameters& parameters, const Tensor& losses) {
  Backend& backend = parameters.backend();
  const Tensor sum = Tensor::zeros(backend, {1}, parameters.type());
  if (losses.size() > 0) {
    backend(Reduce{.reduction = Reduction::sum, .x = losses.reshape({1, losses.size()}), .y = sum});
  }
  return sum;
}

Tensor sum_over_ranks(Communicator& ranks, const Parameters& parameters, const Tensor& losses) {
  if (ranks.size() == 1) return losses;
  Backend& backend = parameters.backend();
  std::vector<Tensor> sums;
  std::vector<const Var*> summed;
  std::vector<double> here;  // for each parameter: 1 if it has a gradient on this rank
  for (const Parameter& p : parameters.all()) {
    const Var& var = p.var();
    if (!var.wants_grad()) continue;
    here.push_back(var.grad() ? 1 : 0);
    // Without a gradient, this rank adds -0: x + -0 = x for every sum x, but -0 + 0 = 0.
    if (!var.grad()) {
      const Tensor nothing = empty_like(var.value());
      backend(Fill{.value = -0.0, .y = nothing});
      var.sink().add(nothing);
    }
    summed.push_back(&var);
    sums.push_back(var.sink().sum_in_place());
  }
  const Tensor anywhere = Tensor::from(backend, {std::ssize(here)}, parameters.type(), here);
  sums.push_back(anywhere);
  const Tensor sum = sum_of(parameters, losses);
  sums.push_back(sum);
  ranks.sum(sums);
  const std::vector<double> count = anywhere.to_doubles();
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (count[i] == 0) summed[i]->clear_grad();
  }
  return sum;
}

}  // namespace longhand::nn
