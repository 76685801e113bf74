#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Sorting numbers, and the auxiliary tasks that Awasthi and Gupta 2023 train together with it.
/// Numbers are separated by spaces, and each number is a token:
///
///     5 3 1 4 2 ⊥ 1 2 3 4 5   sort: the numbers in ascending order;
///     5 3 1 4 2 ⊥ 4 5         successor: the next greater number of the input;
///     5 5 5 4 5 ⊥ 4           count: the less frequent of two numbers, or the smaller one if both
///                             are equally frequent;
///     5 5 5 ⊥ 5 ⊥ 5 5         fill: the numbers that the second part lacks.
///
/// All tokens after the prompt's last mark ⊥ are scored. Token k is the number k; ⊥ and PAD follow
/// the largest number. 0 and PAD are never used, but the paper's vocabulary of 103 tokens includes
/// them.
TaskKind sorting();

}  // namespace longhand::tasks
