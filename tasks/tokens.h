#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Uniform random tokens, written as numbers: "12 7 7 3". They cannot be predicted, so the minimum
/// loss is ln(vocabulary). This task is used for models without a known tokenizer, such as some
/// imported ones, whose prompts and answers are then token numbers.
TaskKind tokens();

}  // namespace longhand::tasks
