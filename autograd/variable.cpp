#include "autograd/variable.h"

#include "autograd/slot.h"
#include "core/error.h"

namespace longhand {

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
    (*slot_->backend)(Add{.a = slot_->grad, .b = dy, .y = sum});
    slot_->grad = sum;
    slot_->shared = false;
  } else {
    (*slot_->backend)(Add{.a = slot_->grad, .b = dy, .y = slot_->grad});
  }
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
  if (grad.sole()) shared = false;  // whoever shared it has let go
  if (!shared) return;
  Tensor copy = empty_like(grad);
  (*backend)(Copy{.x = grad, .y = copy});
  grad = copy;
  shared = false;
}

Var::Var(Tensor value, bool wants_grad) : value_(std::move(value)) {
  if (!wants_grad) return;
  LONGHAND_CHECK(value_ && is_float(value_.dtype()),
                 "a value that wants a gradient has a float type");
  sink_ = Sink(std::make_shared<Sink::Slot>(
      Sink::Slot{value_.backend().shared_from_this(), value_.shape(), value_.dtype(), {}, false}));
}

Tensor Var::grad() const { return sink_ ? sink_.slot_->grad : Tensor(); }

void Var::clear_grad() const {
  if (sink_) sink_.slot_->grad = Tensor();
}

}  // namespace longhand
