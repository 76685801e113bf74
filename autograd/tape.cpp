#include "autograd/tape.h"

#include "autograd/slot.h"
#include "core/error.h"

namespace longhand {
namespace {

thread_local Tape* current_tape = nullptr;

}  // namespace

Tape* Tape::current() { return current_tape; }

Recording::Recording(Tape& tape) : outer_(current_tape) { current_tape = &tape; }
Recording::~Recording() { current_tape = outer_; }

void Tape::backward(std::initializer_list<Var> losses) {
  for (const Var& loss : losses) {
    LONGHAND_CHECK(loss.wants_grad(),
                   "backward: the loss depends on no value that wants a gradient");
    LONGHAND_CHECK(loss.value().size() == 1, "backward: a loss has one element, got shape ",
                   loss.shape());
    Tensor one = empty_like(loss.value());
    one.backend()(Fill{.value = 1, .y = one});
    loss.sink().add(one);
  }
  walk();
}

void Tape::backward(const Var& y, const Tensor& dy) {
  LONGHAND_CHECK(y.wants_grad(), "backward: the output depends on no value that wants a gradient");
  y.sink().add(dy);
  walk();
}

void Tape::walk() {
  Tape* const recording = current_tape;
  current_tape = nullptr;  // backward functions call the contract; nothing here is recorded
  try {
    while (!records_.empty()) {
      const Record record = std::move(records_.back());
      records_.pop_back();
      const Tensor dy = std::move(record.output.slot_->grad);
      record.output.slot_->grad = Tensor();
      if (dy) record.backward(dy);  // no gradient arrived: the output does not reach a loss
    }
  } catch (...) {
    current_tape = recording;
    records_.clear();
    throw;
  }
  current_tape = recording;
}

}  // namespace longhand
