#include "autograd/variable.h"

#include "autograd/slot.h"
#include "core/contract/combine.h"
#include "core/contract/elementwise.h"
#include "core/contract/rearrange.h"
#include "core/contract/reduce.h"
#include "core/error.h"

namespace longhand {
namespace {

/// Undoes broadcasting: sums dy over the axes along which a tensor of `shape` was broadcast. If
/// necessary, these axes are first moved to the end.
Tensor summed(const Tensor& dy, const Shape& shape, DType type) {
  Backend& run = dy.backend();
  const Shape& from = dy.shape();
  const Steps of_shape = repeated(shape, from), of_dy = row_major(from);
  std::vector<int> kept, summed;
  for (int a = 0; a < from.rank(); ++a) {
    if (from[a] != 1) (of_shape.along[a] == 0 ? summed : kept).push_back(a);
  }
  const std::int64_t count = shape.size(), each = count == 0 ? 0 : from.size() / count;
  const Tensor sums(run, {count}, master_type(type));
  if (!summed.empty() && !kept.empty() && summed.back() < kept.front()) {
    run(ColumnSum{.x = dy.reshape({each, count}), .y = sums});
  } else {
    Tensor rows = dy;
    if (!summed.empty() && !kept.empty() && summed.front() < kept.back()) {
      Index extents{};
      Steps steps;
      int rank = 0;
      for (const std::vector<int>* axes : {&kept, &summed}) {
        for (const int a : *axes) {
          extents[rank] = from[a];
          steps.along[rank++] = of_dy.along[a];
        }
      }
      const Shape moved(std::span<const std::int64_t>(extents).first(rank));
      rows = Tensor(run, moved, dy.dtype());
      run(Rearrange{.shape = moved, .x = dy, .from = steps, .y = rows, .to = row_major(moved)});
    }
    run(Reduce{.reduction = Reduction::sum, .x = rows.reshape({count, each}), .y = sums});
  }
  if (sums.dtype() == type) return sums.reshape(shape);
  const Tensor converted(run, shape, type);
  run(Copy{.x = sums.reshape(shape), .y = converted});
  return converted;
}

}  // namespace

Target Sink::target() const {
  if (!slot_) return {};
  if (!slot_->grad) {
    slot_->grad = Tensor(*slot_->backend, slot_->shape, slot_->dtype);
    slot_->shared = false;
    return {slot_->grad, false};
  }
  slot_->own();
  return {slot_->grad, true};
}

void Sink::add(const Tensor& dy) const {
  if (!slot_) return;
  LONGHAND_CHECK(dy.shape() == slot_->shape && dy.dtype() == slot_->dtype, "gradient: expected ",
                 slot_->shape, ' ', slot_->dtype, ", got ", dy.shape(), ' ', dy.dtype());
  if (!slot_->grad) {
    slot_->grad = dy;
    slot_->shared = true;
  } else if (slot_->shared) {
    Tensor sum = empty_like(dy);
    (*slot_->backend)(Combine{.f = Combination::sum, .a = slot_->grad, .b = dy, .y = sum});
    slot_->grad = sum;
    slot_->shared = false;
  } else {
    (*slot_->backend)(Combine{.f = Combination::sum, .a = slot_->grad, .b = dy, .y = slot_->grad});
  }
}

void Sink::add_repeated(const Tensor& dy) const {
  if (!slot_) return;
  add(dy.shape() == slot_->shape ? dy : summed(dy, slot_->shape, slot_->dtype));
}

Tensor Sink::sum_in_place() const {
  if (!slot_->grad) {
    slot_->grad = Tensor::zeros(*slot_->backend, slot_->shape, slot_->dtype);
    slot_->shared = false;
  }
  slot_->own();
  return slot_->grad;
}

void Sink::Slot::own() {
  if (grad.sole()) shared = false;  // no other tensor shares the memory any more
  if (!shared) return;
  Tensor copy = empty_like(grad);
  (*backend)(Copy{.x = grad, .y = copy});
  grad = copy;
  shared = false;
}

Var::Var(Tensor value, bool wants_grad) : value_(std::move(value)) {
  if (!wants_grad) return;
  LONGHAND_CHECK(value_ && is_float(value_.dtype()),
                 "only values of type f64, f32 or bf16 can require a gradient");
  sink_ = Sink(std::make_shared<Sink::Slot>(
      Sink::Slot{value_.backend().shared_from_this(), value_.shape(), value_.dtype(), {}, false}));
}

Tensor Var::grad() const { return sink_ ? sink_.slot_->grad : Tensor(); }

void Var::clear_grad() const {
  if (sink_) sink_.slot_->grad = Tensor();
}

}  // namespace longhand
