#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Uniform random tokens, written as numbers: "12 7 7 3". They cannot be predicted, so the minimum
/// loss is ln(vocabulary). This is also the default task of a published model without a tokenizer,
/// because the prompts and answers of such a model must be written as numbers.
TaskKind tokens();

}  // namespace longhand::tasks
