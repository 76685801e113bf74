#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A table of letters with their values, then a string of these letters, then the values of the
/// letters in the string: B1E0D1A1C0 ABBEDACABCD=11101101101. To predict a value, a model must
/// attend to its letter in the string and to this letter's pair in the table.
TaskKind value_assignment();

}  // namespace longhand::tasks
