#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Keeping track of what is in which box (Kim & Schuster 2023, as changed by the ChaCAL paper). A
/// sentence says what each box holds, further ones put, remove and move objects; the answer is one
/// sentence about all boxes:
///   <begin> The rose is in Box B, the key is in Box D. Move the contents of Box B to Box A.
///   <answer> Box A contains the rose, Box D contains the key. <end>
/// The version `default` has 7 boxes and 32 operations and moves any of a box's objects; `advanced`
/// has 8 boxes of which 4 hold something at all times, moves whole boxes without naming what they
/// hold, and says nothing of empty ones. A token is a word or a mark. Asked is the answer with its
/// end.
TaskKind boxes();

}  // namespace longhand::tasks
