#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Tracking the contents of boxes (Kim & Schuster 2023, as changed by the ChaCAL paper). The first
/// sentence lists the contents of each box. The other sentences of the prompt put, remove and move
/// objects. The answer is one sentence about all boxes:
///   <begin> The rose is in Box B, the key is in Box D. Move the contents of Box B to Box A.
///   <answer> Box A contains the rose, Box D contains the key. <end>
/// The version `default` has 7 boxes and 32 operations, and a move may take only some of a box's
/// objects. The version `advanced` has 8 boxes, 4 of which always contain something. Its moves take
/// all objects of a box without naming them, and its sentences do not mention empty boxes. A token
/// is a word or a punctuation mark. The answer and the end token are scored.
TaskKind boxes();

}  // namespace longhand::tasks
