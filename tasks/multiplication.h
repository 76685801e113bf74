#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Two numbers, the larger one first, and their product, computed as on paper. All numbers are
/// written with the last digit first: 9900*9900=1980+0198+0000+0000=1089. There is one row (partial
/// product) for each digit of the second number. With padding, all numbers have twice as many
/// digits as the first number. To predict digit j of row i, a model must attend to digit j of the
/// first number and to digit i of the second number.
TaskKind multiplication();

}  // namespace longhand::tasks
