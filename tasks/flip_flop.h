#pragma once

#include <memory>

#include "tasks/task.h"

namespace longhand::tasks {

/// The Flip-Flop language F(p) of Liu et al. 2023: a register of one bit. An instruction is a
/// letter and a bit, a token each: w writes the bit, r reads it back, i is to be ignored;
/// `w1w0i0r0`. Instructions are independent: ignore with probability p, read and write with (1 - p)
/// / 2; bits of w and i are fair. The first instruction is a write, for a read before any has no
/// answer. Asked are the bits of the reads.
///
/// Or the letters drift within a sample: at first 1 to 16 instructions are writes and ignores, as
/// likely; then they are ignored with probability 0.995, else read or written, as likely; of the
/// last 16 to 64, reads are 0.9 and ignores 0.1. All lengths of either end are equally likely.
struct FlipFlop {
  std::int64_t instructions = 512;  // in a sample; each is two tokens
  double ignore = 0.6;              // p
  bool every_token = false;         // trained is every token, not the bits of reads alone
  bool drift = false;               // in place of p

  std::unique_ptr<Task> make() const;
};

TaskKind flip_flop();

}  // namespace longhand::tasks
