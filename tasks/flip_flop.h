#pragma once

#include <memory>

#include "tasks/task.h"

namespace longhand::tasks {

/// The Flip-Flop language F(p) of Liu et al. 2023: a one-bit register. An instruction is a letter
/// and a bit, with one token each: w writes the bit, r reads it back, i is ignored, as in
/// `w1w0i0r0`. Instructions are independent: an ignore with probability p, a read or a write with
/// probability (1 - p) / 2 each. The bits of w and i are uniform. The first instruction is a write,
/// because an earlier read would have no answer. The bits of the reads are scored.
///
/// With drifting letters, the first 1 to 16 instructions are writes and ignores with equal
/// probability. The middle ones are ignores with probability 0.995, otherwise reads or writes with
/// equal probability. The last 16 to 64 are reads with probability 0.9, otherwise ignores. The
/// lengths of the first and last part are uniform.
struct FlipFlop {
  std::int64_t instructions = 512;  // instructions per sample, of two tokens each
  double ignore = 0.6;              // the probability p
  bool every_token = false;         // train on every token, not only on the bits of reads
  bool drift = false;               // the letters drift; p is not used

  std::unique_ptr<Task> make() const;
};

TaskKind flip_flop();

}  // namespace longhand::tasks
