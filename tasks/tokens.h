#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Uniform random tokens, written as numbers: "12 7 7 3". No token can be predicted, so the minimum
/// loss is ln vocabulary. Used for models whose text is unknown, such as imported ones, which then
/// read and write token numbers.
TaskKind tokens();

}  // namespace longhand::tasks
