#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Random tokens, written as their numbers, each as likely: "12 7 7 3". The next one follows from
/// nothing; the least loss is ln vocabulary. For models whose own text is not known here: those
/// imported, which then read and say token numbers.
TaskKind tokens();

}  // namespace longhand::tasks
