#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Uniform random tokens, written as numbers: "12 7 7 3". They cannot be predicted, so the minimum
/// loss is ln(vocabulary). A model whose tokenizer is unknown, such as some imported models, gets
/// this task, so that its prompts and answers are written as numbers.
TaskKind tokens();

}  // namespace longhand::tasks
