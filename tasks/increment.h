#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Adding one to a number, and the helper that Awasthi and Gupta 2023 train beside it:
///   1 2 3 ⊥ 4 2 1               the task: the digits of the sum, the last one first
///   1 2 3 ⊥ 4 ↑ 0 2 ↑ 0 1 ↑ 0   carry: after each digit the carry out of it
/// A number of nines grows by a digit, which is 1 and asked as the others are: 9 9 ⊥ 0 0 1, and
/// with carries 9 9 ⊥ 0 ↑ 1 0 ↑ 1 1 ↑ 0. Asked is all that follows ⊥. Token d is the digit d.
TaskKind increment();

}  // namespace longhand::tasks
