#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Following a cycle. The prompt lists the edges of one directed cycle in random order and names a
/// start; the answer is the walk from there, the start's successor first:
///   E 984,456 345,984 456,345 C 345 984 456 345 984 ...
/// as many whole nodes as fit the budget of tokens. Nodes are distinct numbers of three digits,
/// written with a token for each character or with one token for the number. Asked is all of the
/// answer.
TaskKind cycle_tracing();

}  // namespace longhand::tasks
