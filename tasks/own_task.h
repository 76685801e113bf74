#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A task made from files of records {"prompt", "answer"}. Each file is a training or test
/// distribution of this task, with the file's name (tasks/task_files.h).
TaskKind own_task();

}  // namespace longhand::tasks
