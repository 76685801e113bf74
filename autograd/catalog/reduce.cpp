#include "autograd/reduce.h"

#include <algorithm>
#include <cmath>

#include "autograd/catalog/catalog.h"
#include "core/contract/reduce.h"

namespace longhand::catalog {
namespace {

std::vector<Case> matrices(Rng& rng) {
  std::vector<Case> cases;
  for (const Shape& s : {Shape{1, 1}, Shape{3, 5}, Shape{2, 70}, Shape{65, 33}, Shape{300, 4}}) {
    cases.push_back({{{"x", normals(rng, s)}}});
  }
  return cases;
}

/// Matrices in which the largest entry of each row exceeds all others by a margin, because the
/// maximum has a kink where two entries are equal.
std::vector<Case> with_clear_maxima(Rng& rng) {
  std::vector<Case> cases = matrices(rng);
  for (Case& c : cases) {
    HostTensor& x = c.inputs["x"];
    for (auto row = x.values.begin(); row != x.values.end(); row += x.shape.columns()) {
      *std::max_element(row, row + x.shape.columns()) += 0.1;
    }
  }
  return cases;
}

Operation unary(std::string name, std::string formula, Var (*run)(const Var&),
                std::vector<Case> (*cases)(Rng&) = matrices) {
  return {.name = std::move(name),
          .page = "reduce",
          .formula = std::move(formula),
          .inputs = {{"x", "[rows, n]"}},
          .attributes = {},
          .outputs = {"y"},
          .run = [run](const Call& c) -> std::vector<Output> {
            return {{"y", run(c.in("x"))}};
          },
          .cases = cases};
}

/// An operation that reduces each row to one number and has no gradient.
Operation plain(Reduction reduction, std::string formula) {
  return {.name = std::string(name_of(reduction)),
          .page = "reduce",
          .formula = std::move(formula),
          .inputs = {{"x", "[rows, n]", Role::activation, false}},
          .attributes = {},
          .outputs = {"y"},
          .run = [reduction](const Call& c) -> std::vector<Output> {
            const Tensor& x = c.in("x").value();
            const Tensor y(c.backend(), {x.rows()}, master_type(x.dtype()));
            c.backend()(Reduce{.reduction = reduction, .x = x, .y = y});
            return {{"y", y}};
          },
          .cases = matrices};
}

/// Cases for reductions along one axis: tensors with one to four axes, and the axis to be reduced.
std::vector<Case> with_axes(Rng& rng) {
  std::vector<Case> cases;
  const std::vector<std::pair<Shape, const char*>> all{
      {{6}, "0"},       {{3, 40}, "-1"},     {{70, 3}, "0"},   {{2, 5, 3}, "1"},
      {{4, 3, 2}, "0"}, {{2, 3, 4, 5}, "2"}, {{1, 9, 1}, "-2"}};
  for (const auto& [shape, axis] : all) {
    HostTensor x = normals(rng, shape);
    // No two entries are near each other, because the maximum has a kink where two entries are
    // equal.
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      x.values[i] = std::round(4 * x.values[i]) + 0.01 * static_cast<double>(i % 97);
    }
    cases.push_back({{{"x", std::move(x)}}, {{"axis", axis}}});
  }
  return cases;
}

Operation along_axis(std::string name, std::string formula, Var (*run)(const Var&, int)) {
  return {.name = std::move(name),
          .page = "reduce",
          .formula = std::move(formula),
          .inputs = {{"x", "[...]"}},
          .attributes = {{"axis", "-1", "axis; negative axes count from the end"}},
          .outputs = {"y"},
          .run = [run](const Call& c) -> std::vector<Output> {
            return {{"y", run(c.in("x"), static_cast<int>(c.integer("axis")))}};
          },
          .cases = with_axes};
}

std::vector<Operation> reduce_operations() {
  return {unary("column_sum", "y_j = sum_i x_ij", column_sum),
          unary("row_sum", "y_i = sum_j x_ij", row_sum),
          unary("sum", "y = sum_ij x_ij", sum),
          unary("mean", "y = sum_ij x_ij / (rows n)", mean),
          unary("row_max", "y_i = max_j x_ij", row_max, with_clear_maxima),
          along_axis("axis_sum", "y = sum of x along an axis", sum),
          along_axis("axis_mean", "y = mean of x along an axis", mean),
          along_axis("axis_max", "y = maximum of x along an axis", max),
          plain(Reduction::smallest, "y_i = min_j x_ij"),
          plain(Reduction::square_sum, "y_i = sum_j x_ij^2"),
          plain(Reduction::nonfinite, "y_i = number of x_ij that are infinite or NaN")};
}

}  // namespace

extern const Family reduce_family;
constinit const Family reduce_family{reduce_operations};

}  // namespace longhand::catalog
