#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Sorting numbers, and the helpers that Awasthi and Gupta 2023 train beside it. Numbers are
/// written apart, a token each:
///
///     5 3 1 4 2 ⊥ 1 2 3 4 5   the task: the numbers in ascending order
///     5 3 1 4 2 ⊥ 4 5         successor: the next greater number of the input
///     5 5 5 4 5 ⊥ 4           count: the rarer of two numbers, or the smaller
///     5 5 5 ⊥ 5 ⊥ 5 5         fill: what the second part lacks to be the first
///
/// Asked is what follows the last mark that is given. Token k is the number k; after the largest
/// number come ⊥ and PAD. 0 and PAD are never used: the paper's vocabulary of 103 has room for
/// them.
TaskKind sorting();

}  // namespace longhand::tasks
