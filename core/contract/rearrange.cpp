#include "core/contract/rearrange.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/contract/require.h"

namespace longhand {
namespace {

/// True if the steps map every index of `shape` to an existing entry of x.
bool within(const Shape& shape, const Steps& steps, const Tensor& x) {
  if (shape.size() == 0) return true;
  if (steps.first < 0 || steps.first >= x.size()) return false;
  // the largest offset that the remaining axes may add without passing the last entry of x
  std::int64_t left = x.size() - 1 - steps.first;
  for (int a = 0; a < shape.rank(); ++a) {
    const std::int64_t last = shape[a] - 1, step = steps.along[a];
    if (step < 0 || (last > 0 && step > left / last)) return false;
    left -= last * step;
  }
  return true;
}

/// True only if the steps map no two indices of `shape` to the same entry. The axes are sorted by
/// step. The step of each axis must be greater than the largest offset that all axes with smaller
/// steps can reach together. This test also rejects some layouts that select no entry twice.
bool apart(const Shape& shape, const Steps& steps) {
  // for each axis of the shape: its step in memory, and its extent
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;
  for (int a = 0; a < shape.rank(); ++a) {
    if (shape[a] == 0) return true;
    if (shape[a] > 1) axes.emplace_back(steps.along[a], shape[a]);
  }
  std::ranges::sort(axes);
  std::int64_t reached = 0;
  for (const auto& [step, extent] : axes) {
    if (step <= reached) return false;
    reached += step * (extent - 1);
  }
  return true;
}

}  // namespace

void check(const Rearrange& op) {
  Arguments are(Rearrange::name);
  are.floats("x", op.x);
  are.require(within(op.shape, op.from, op.x), "from",
              "expected an offset and strides that select only entries of x, whose shape is ",
              op.x.shape());
  if (!op.y) return;
  const Tensor& y = op.y.tensor;
  are.require(is_float(y.dtype()) && master_type(y.dtype()) == master_type(op.x.dtype()), "y",
              "expected f64 if x is f64, otherwise f32 or bf16, got ", y.dtype(), " for x of type ",
              op.x.dtype());
  are.out("y", op.y, y.shape(), y.dtype());
  are.require(within(op.shape, op.to, y), "to",
              "expected an offset and strides that select only entries of y, whose shape is ",
              y.shape());
  are.require(apart(op.shape, op.to), "to",
              "expected strides that select each entry of y at most once");
}

}  // namespace longhand
