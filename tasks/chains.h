#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Following references. The first block contains values, every later one the positions of the
/// block before it in random order:
///   v3 v1 v3 v0  2 0 3 1  5 4 6 7  ...
/// Each token refers to the one at its position, and so on down to a value; this is its chain. At
/// every token the model predicts the whole chain at once, with one choice in each of as many
/// groups as there are blocks: group 0 the value, group g the position in block g - 1. All of it is
/// asked, so a token of block b answers in groups 0 .. b. The answer in group b - d is d references
/// away.
TaskKind chains();

}  // namespace longhand::tasks
