#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Numbers with the last digit first, and their sum: 12400+43350+34400=89160. With padding, all
/// numbers have one digit more than the longest number. Reference attention: digit i of the sum
/// depends on digit i of every number.
TaskKind addition();

}  // namespace longhand::tasks
