#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Sorting numbers, and the auxiliary tasks that Awasthi and Gupta 2023 train with it. Numbers are
/// separated by spaces, and each is a token:
///
///     5 3 1 4 2 ⊥ 1 2 3 4 5   the task: the numbers in ascending order
///     5 3 1 4 2 ⊥ 4 5         successor: the next greater number of the input
///     5 5 5 4 5 ⊥ 4           count: the rarer of two numbers, or the smaller
///     5 5 5 ⊥ 5 ⊥ 5 5         fill: what the second part lacks to be the first
///
/// Everything after the last given mark is asked. Token k is the number k, followed by ⊥ and PAD
/// after the largest number. 0 and PAD are never used; the paper's vocabulary of 103 includes them.
TaskKind sorting();

}  // namespace longhand::tasks
