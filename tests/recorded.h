#pragma once

#include <utility>

#include "autograd/tape.h"

namespace longhand {

/// Records `forward` on the tape and returns its result.
template <class Forward>
auto recorded(Tape& tape, Forward&& forward) {
  const Recording recording(tape);
  return std::forward<Forward>(forward)();
}

/// Computes the gradients of the loss that `forward` returns, and adds them to those that the
/// leaves already have.
template <class Forward>
void backpropagate(Forward&& forward) {
  Tape tape;
  tape.backward(recorded(tape, std::forward<Forward>(forward)));
}

}  // namespace longhand
