#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A number and its successors, each followed by a space: 234 235 236 . The number of successors is
/// free, so the end is not scored. A character depends on the previous number with its space, and
/// on the part of the current number already written.
TaskKind successor();

}  // namespace longhand::tasks
