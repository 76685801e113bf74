#pragma once

#include <memory>

#include "tasks/task.h"

namespace longhand::tasks {

/// The Flip-Flop language F(p) of Liu et al. 2023, with a single one-bit register. An instruction
/// is a letter and a bit, with one token each, as in `w1w0i0r0`. w writes the bit, the bit after r
/// is the bit in the register, and i is ignored. Instructions are drawn independently. An ignore
/// has probability p, and a read and a write have probability (1 - p) / 2 each. The bits of w and i
/// are uniform. The first instruction is a write, because a read before any write would have no
/// answer. The bits of reads are scored.
///
/// With `drift`, a sample has three parts. The first part has 1 to 16 instructions: writes or
/// ignores with equal probability. In the middle part, an ignore has probability 0.995, and a read
/// and a write 0.0025 each. The last part has 16 to 64 instructions: reads with probability 0.9,
/// otherwise ignores. The lengths of the first and the last part are drawn uniformly.
struct FlipFlop {
  std::int64_t instructions = 512;  // instructions per sample; each has two tokens
  double ignore = 0.6;              // probability that an instruction is ignored
  bool every_token = false;         // train on every token, not only on the bits of reads
  bool drift = false;               // probabilities vary within a sample; `ignore` is not used

  std::unique_ptr<Task> make() const;
};

TaskKind flip_flop();

}  // namespace longhand::tasks
