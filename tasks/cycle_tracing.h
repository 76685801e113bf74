#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Following a cycle. The prompt lists the edges of one directed cycle in random order and names a
/// start. The answer is the walk from there, beginning with the start's successor:
///   E 984,456 345,984 456,345 C 345 984 456 345 984 ...
/// with as many whole nodes as fit the token budget. Nodes are distinct numbers of three digits,
/// written with one token per character or per number. The whole answer is asked.
TaskKind cycle_tracing();

}  // namespace longhand::tasks
