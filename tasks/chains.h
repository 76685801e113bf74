#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Chains of references. The tokens of the first block are values. Every later block contains the
/// positions of the previous block in random order:
///   v3 v1 v3 v0  2 0 3 1  5 4 6 7  ...
/// A token in a later block refers to the token at the position that it names, which refers to
/// another token, and so on until a value. These tokens are its chain. For every token, the model
/// predicts the whole chain at once, with one group of classes per block. Group 0 predicts the
/// value, and group g > 0 predicts the position in block g - 1. For a token of block b, groups 0 ..
/// b are scored. To predict group b - d, the model must follow d references.
TaskKind chains();

}  // namespace longhand::tasks
