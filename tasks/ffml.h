#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Flip-flop with registers of a bit, 0 at first: w11i11f10r10f10r1 is answered by 1. A command is
/// a letter, a register and a bit: w writes it, r reads it, f flips the register's, whatever bit is
/// written beside it, and i changes nothing. To answer the last read one looks at its register, at
/// that register's flips, and at the write before them.
TaskKind ffml();

}  // namespace longhand::tasks
