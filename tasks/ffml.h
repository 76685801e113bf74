#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A flip-flop language with several one-bit registers, which are initially 0. A command consists
/// of a letter, a register and a bit. w writes the bit to the register. The bit after r is the bit
/// in the register. f flips the register and ignores its own bit. i does nothing. The answer is the
/// bit of the last read: for w11i11f10r10f10r1 it is 1. It depends on the last write to the
/// register and on all later flips of the register.
TaskKind ffml();

}  // namespace longhand::tasks
