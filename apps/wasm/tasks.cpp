#include "tasks/chains.h"
#include "tasks/copying.h"
#include "tasks/cycle_tracing.h"
#include "tasks/flip_flop.h"
#include "tasks/recall.h"
#include "tasks/sorting.h"
#include "tasks/task.h"

/// The tasks of the WebAssembly module. This file replaces tasks/all_tasks.cpp. The module cannot
/// read files, so named_task() accepts the name of a kind of task, but not the path of task files.
namespace longhand::tasks {

std::span<const TaskKind> all_tasks() {
  static const std::vector<TaskKind> kinds{flip_flop(), cycle_tracing(), chains(),
                                           recall(),    copying(),       sorting()};
  return kinds;
}

NamedTask named_task(std::string_view word) { return {task_kind(word)}; }

}  // namespace longhand::tasks
