#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A string and its characters from the last to the first: dh13=31hd. To say character i of the
/// answer one looks at character i from the string's end.
TaskKind reversal();

}  // namespace longhand::tasks
