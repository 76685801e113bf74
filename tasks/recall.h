#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Multi-query associative recall as in Zoology (Arora et al. 2023). A sample begins with a table
/// of keys and values. Slots of two tokens follow, and some slots contain a key:
///   k1 v1 k2 v2 ... kN vN  k2 x  x x  k1 x  x x ...
/// With V tokens in the vocabulary, keys are distinct tokens from 1 to V/2 - 1, and values are
/// distinct tokens from V/2 on. Each key is the first token of one slot. There, the model must
/// predict the key's value. All other tokens of slots (x) are drawn uniformly. For each key, one of
/// the free slots is drawn. Slot s = 1, 2, ... has a probability proportional to s^-0.99, so most
/// keys are near the table.
///
/// If `repeats` is r, the table contains r pairs for each key, with different values. All pairs are
/// in random order. The model must predict the value in the key's `back`-th pair from the end;
/// `back` = 1 selects the last pair.
TaskKind recall();

}  // namespace longhand::tasks
