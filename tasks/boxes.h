#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Tracks what is in which box (Kim & Schuster 2023, as changed by the ChaCAL paper). A sentence
/// lists the contents of each box, and further sentences put, remove and move objects. The answer
/// is one sentence about all boxes:
///   <begin> The rose is in Box B, the key is in Box D. Move the contents of Box B to Box A.
///   <answer> Box A contains the rose, Box D contains the key. <end>
/// The version `default` has 7 boxes and 32 operations and moves any of a box's objects. `advanced`
/// has 8 boxes of which 4 always contain something, moves whole boxes without naming their
/// contents, and does not mention empty ones. A token is a word or a punctuation mark. The answer
/// with its end is asked.
TaskKind boxes();

}  // namespace longhand::tasks
