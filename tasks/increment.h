#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Adding one to a number, and the auxiliary task of Awasthi and Gupta 2023:
///   1 2 3 ⊥ 4 2 1               task: the digits of the sum, the last one first;
///   1 2 3 ⊥ 4 ↑ 0 2 ↑ 0 1 ↑ 0   carry: each digit is followed by the carry out of its place.
/// If all digits are nines, the sum has one digit more: 9 9 ⊥ 0 0 1, and with carries 9 9 ⊥ 0 ↑ 1 0
/// ↑ 1 1 ↑ 0. All tokens after ⊥ are scored. Token d is the digit d.
TaskKind increment();

}  // namespace longhand::tasks
