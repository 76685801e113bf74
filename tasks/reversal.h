#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A string, and its characters in reverse order: dh13=31hd. Character i of the answer depends on
/// character i from the end of the string.
TaskKind reversal();

}  // namespace longhand::tasks
