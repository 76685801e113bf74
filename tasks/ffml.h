#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Flip-flop with registers of one bit, initially 0: w11i11f10r10f10r1 is answered by 1. A command
/// is a letter, a register and a bit: w writes the bit, r reads the register, f flips it and
/// ignores the bit, and i changes nothing. The answer to the last read depends on its register, on
/// the flips of this register, and on the last write before these flips.
TaskKind ffml();

}  // namespace longhand::tasks
