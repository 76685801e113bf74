#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A number and its successors, each followed by a space: 234 235 236 . An answer may have any
/// number of successors, so it has no end token. To predict a character, a model must attend to the
/// previous number with its space, and to the earlier characters of the current number.
TaskKind successor();

}  // namespace longhand::tasks
