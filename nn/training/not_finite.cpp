#include "nn/training/not_finite.h"

#include <utility>

#include "core/contract/reduce.h"
#include "nn/training/gradient_tree.h"

namespace longhand::nn {

std::int64_t count_nonfinite(const Tensor& x) {
  if (x.size() == 0 || !is_float(x.dtype())) return 0;
  const Tensor rows(x.backend(), {x.rows()}, master_type(x.dtype()));
  x.backend()(Reduce{.reduction = Reduction::nonfinite, .x = x, .y = rows});
  const Tensor all(x.backend(), {1}, rows.dtype());
  x.backend()(Reduce{.reduction = Reduction::sum, .x = rows.reshape({1, rows.size()}), .y = all});
  return static_cast<std::int64_t>(all.item());
}

std::string first_nonfinite(Model& model, const Step& step, Communicator& ranks) {
  const Parameters& parameters = model.parameters();
  std::string first;
  const auto look = [&](const std::string& name, const Tensor& x) {
    if (!first.empty()) return;
    const std::int64_t bad = count_nonfinite(x);
    if (bad > 0) first = text(name, " (", bad, " of ", x.size(), " entries)");
  };
  for (const Parameter& p : parameters.all()) look(p.name(), p.value());
  const auto watch = std::exchange(model.watch, look);
  PlacedStep placed(model, step);
  placed.add_gradients(model);
  model.watch = watch;
  sum_over_ranks(ranks, parameters, placed.losses());
  for (const Parameter& p : parameters.all()) {
    if (const Tensor gradient = p.var().grad()) look("gradient of " + p.name(), gradient);
  }
  parameters.clear_gradients();
  for (const std::string& found : ranks.gather(std::string_view(first))) {
    if (!found.empty()) return found;
  }
  return "the loss";
}

}  // namespace longhand::nn
