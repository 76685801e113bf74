#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Chains of references. The tokens of the first block are values. Every later block contains the
/// positions of the previous block in random order:
///   v3 v1 v3 v0  2 0 3 1  5 4 6 7  ...
/// A token in a later block names a position and refers to the token there, which refers to another
/// token, and so on until a value. These tokens are its chain. For every token, the model predicts
/// the whole chain at once, with one group of classes per block. For a token of block b, groups 0
/// to b are scored, and group g predicts the token of the chain that is in block g. The classes of
/// group 0 are the values. The classes of group g > 0 are the positions that such a token can name,
/// numbered within block g - 1. To predict group b - d, the model must follow d references.
TaskKind chains();

}  // namespace longhand::tasks
