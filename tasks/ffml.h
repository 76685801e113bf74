#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A flip-flop language with one-bit registers, initially 0: the answer to w11i11f10r10f10r1 is 1.
/// A command consists of a letter, a register and a bit. w writes the bit, r reads the register, f
/// flips it and ignores the bit, and i does nothing. The answer to the last read depends on its
/// register, on the flips of this register, and on the last write before these flips.
TaskKind ffml();

}  // namespace longhand::tasks
