#pragma once

#include <utility>

#include "autograd/tape.h"

namespace longhand {

/// Calls `forward`, records its operations on the tape and returns its result.
template <class Forward>
auto recorded(Tape& tape, Forward&& forward) {
  const Recording recording(tape);
  return std::forward<Forward>(forward)();
}

/// Computes the gradients of the loss that `forward` returns. Adds them to the gradients that
/// parameters and other leaves already have.
template <class Forward>
void backpropagate(Forward&& forward) {
  Tape tape;
  tape.backward(recorded(tape, std::forward<Forward>(forward)));
}

}  // namespace longhand
