#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A string, then the same characters in reverse order: dh13=31hd. Reference attention: a character
/// of the answer depends on the same character of the string.
TaskKind reversal();

}  // namespace longhand::tasks
