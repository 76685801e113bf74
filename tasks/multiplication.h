#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Two numbers, the larger one first, and their product, computed as on paper. All numbers are
/// written with the last digit first: 9900*9900=1980+0198+0000+0000=1089. There is one row (partial
/// product) for each digit of the second number, and row i is shifted by i places. With padding,
/// all numbers have twice as many digits as the first number. The reference attention counts digits
/// from the start of a row, including the zeros of the shift: for digit j of row i, it consists of
/// digit j of the first number and digit i of the second number.
TaskKind multiplication();

}  // namespace longhand::tasks
