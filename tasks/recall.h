#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Multi-query associative recall as in Zoology (Arora et al. 2023): a table of keys and their
/// values, then slots of two tokens, some of which ask for a key:
///   k1 v1 k2 v2 ... kN vN  k2 x  x x  k1 x  x x ...
/// With V tokens, keys are distinct tokens from 1 to V/2 - 1, and values distinct tokens from V/2
/// on. Each key is in the first place of one slot, where its value must be predicted; all other
/// places (x) contain uniform tokens. The slots x = 1, 2, ... of key 1, key 2, ... are drawn one
/// after another without replacement, with probabilities proportional to x^-0.99, so most are near
/// the table.
///
/// With `repeats` r, the table gives each key r values, in random order of all N r pairs, and the
/// `back`-th last of them must be predicted.
TaskKind recall();

}  // namespace longhand::tasks
