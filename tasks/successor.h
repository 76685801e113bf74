#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A number and its successors, each followed by a space: 234 235 236 . An answer may have any
/// number of successors, so the end is not scored. Reference attention: a character depends on the
/// previous number with its space, and on the characters before it in the current number.
TaskKind successor();

}  // namespace longhand::tasks
