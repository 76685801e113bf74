#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A table of letters with their values, and a string of those letters that is to be translated:
/// B1E0D1A1C0 ABBEDACABCD=11101101101. To say a value one looks at the letter in the string and at
/// its pair in the table.
TaskKind value_assignment();

}  // namespace longhand::tasks
