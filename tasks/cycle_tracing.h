#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Following a cycle. The prompt lists the edges of a directed cycle in random order and names a
/// start node. The answer lists the nodes along the cycle, beginning with the successor of the
/// start node:
///   E 984,456 345,984 456,345 C 345 984 456 345 984 ...
/// The answer has as many nodes as fit into the maximum number of tokens. Nodes are distinct
/// numbers of three digits. Either each character is a token, or each number is. The whole answer
/// is scored.
TaskKind cycle_tracing();

}  // namespace longhand::tasks
