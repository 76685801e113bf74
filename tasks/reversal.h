#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A string, then the same characters in reverse order: dh13=31hd. To predict a character of the
/// answer, a model must attend to the same character of the string.
TaskKind reversal();

}  // namespace longhand::tasks
