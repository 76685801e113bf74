#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A number and those that follow it, each with a space: 234 235 236 . Nothing says how many are
/// wanted, so no end is asked. To say a character one looks at the number before, with its space,
/// and at what is written of the present one.
TaskKind successor();

}  // namespace longhand::tasks
