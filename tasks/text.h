#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Text of one's own, each next token learned from those before it. What is not for training is
/// held out: another file, or the last part of the text (tasks/text_source.h).
TaskKind own_text();

}  // namespace longhand::tasks
