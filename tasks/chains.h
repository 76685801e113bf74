#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Following chains of references. The first block of tokens contains values. Every later block
/// contains the positions of the previous block in random order:
///   v3 v1 v3 v0  2 0 3 1  5 4 6 7  ...
/// Each token refers to the token at the position that it names, and so on down to a value; this is
/// its chain. For every token, the model predicts the whole chain at once: there are as many groups
/// of classes as blocks, group 0 predicts the value and group g the position in block g - 1.
/// Everything is scored, so for a token of block b the groups 0 .. b are. The prediction in group b
/// - d is d references away.
TaskKind chains();

}  // namespace longhand::tasks
