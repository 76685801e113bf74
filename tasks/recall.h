#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Multi-query associative recall as in Zoology (Arora et al. 2023). A sample consists of a table
/// of keys and values, and then of slots of two tokens, some of which contain a key:
///   k1 v1 k2 v2 ... kN vN  k2 x  x x  k1 x  x x ...
/// With V tokens in the vocabulary, keys are distinct tokens from 1 to V/2 - 1, and values are
/// distinct tokens from V/2 on. Each key is the first token of one slot, where its value must be
/// predicted. All other tokens of slots (x) are uniformly drawn. The slot of each key is drawn in
/// turn, without replacement. Slot s = 1, 2, ... has a probability proportional to s^-0.99, so most
/// keys are near the table.
///
/// If `repeats` is r, the table contains r values for each key, with all N r pairs in random order.
/// The value to predict is the `back`-th value of the key, where `back` = 1 is the last one.
TaskKind recall();

}  // namespace longhand::tasks
