#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A text of the user. Each token is predicted from the tokens before it. Validation uses another
/// file or the end of the text (tasks/text_source.h).
TaskKind own_text();

}  // namespace longhand::tasks
