#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Numbers, their digits from the last to the first, and their sum: 12400+43350+34400=89160.
/// Padded, all have the digits of the longest and one more. To say digit i of the sum one looks at
/// digit i of every number.
TaskKind addition();

}  // namespace longhand::tasks
