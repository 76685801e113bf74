#include <algorithm>
#include <vector>

#include "tasks/addition.h"
#include "tasks/boxes.h"
#include "tasks/chains.h"
#include "tasks/copying.h"
#include "tasks/cycle_tracing.h"
#include "tasks/ffml.h"
#include "tasks/flip_flop.h"
#include "tasks/increment.h"
#include "tasks/multiplication.h"
#include "tasks/own_task.h"
#include "tasks/recall.h"
#include "tasks/reversal.h"
#include "tasks/sorting.h"
#include "tasks/successor.h"
#include "tasks/task.h"
#include "tasks/task_files.h"
#include "tasks/text.h"
#include "tasks/tokens.h"
#include "tasks/value_assignment.h"
#include "tasks/words.h"

namespace longhand::tasks {

std::span<const TaskKind> all_tasks() {
  static const std::vector<TaskKind> kinds{
      flip_flop(), cycle_tracing(),    chains(),    words(),    recall(),   copying(),
      sorting(),   increment(),        boxes(),     reversal(), addition(), multiplication(),
      ffml(),      value_assignment(), successor(), own_text(), tokens(),   own_task()};
  return kinds;
}

NamedTask named_task(std::string_view word) {
  const bool is_kind = std::ranges::find(all_tasks(), word, &TaskKind::name) != all_tasks().end();
  if (!is_kind && names_task_files(word)) return {task_kind("files"), std::string(word)};
  return {task_kind(word)};
}

}  // namespace longhand::tasks
