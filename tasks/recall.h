#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Multi-query associative recall as Zoology draws it (Arora et al. 2023): a table of keys and
/// their values, then slots of two tokens, in some of which a key is asked for:
///   k1 v1 k2 v2 ... kN vN  k2 x  x x  k1 x  x x ...
/// Of a vocabulary of V tokens keys are distinct ones from 1 to V/2 - 1, values distinct ones from
/// V/2 on. Each key stands in the first place of one slot, where its value is to be said; all other
/// places (x) hold uniform tokens. The slots x = 1, 2, ... of key 1, key 2, ... are drawn one after
/// another without replacement, with probabilities in proportion to x^-0.99: mostly near ones.
///
/// With `repeats` r the table gives each key r values, in random order of all N r pairs, and
/// what is to be said is the `back`-th last of them.
TaskKind recall();

}  // namespace longhand::tasks
