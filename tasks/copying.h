#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Selective copying (Arjovsky et al. 2016, in the form of Gu and Dao 2023). The prompt has symbols
/// at random places between noise, then a mark; the answer repeats the symbols in order:
///   . 7 . . 3 . 7 . ⊥ 7 3 7
/// Places are drawn without replacement; symbols are independent and uniform. If every place has a
/// symbol, this is plain copying. All tokens after ⊥ are scored. Token k is the symbol k.
TaskKind copying();

}  // namespace longhand::tasks
