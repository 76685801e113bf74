#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// The Flip-Flop language F(p) of Liu et al. 2023: a register of one bit. An instruction is a
/// letter and a bit, a token each: w writes the bit, r reads it back, i is to be ignored;
/// `w1w0i0r0`. Instructions are independent: ignore with probability p, read and write with (1 - p)
/// / 2; bits of w and i are fair. The first instruction is a write, for a read before any has no
/// answer. Asked are the bits of the reads.
TaskKind flip_flop();

}  // namespace longhand::tasks
