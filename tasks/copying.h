#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Selective copying (Arjovsky et al. 2016, in the form of Gu and Dao 2023): symbols at random
/// places in noise, a mark, and the symbols in order:
///   . 7 . . 3 . 7 . ⊥ 7 3 7
/// Places are drawn without replacement; symbols are independent and uniform. If every place holds
/// a symbol, this is plain copying. Everything after ⊥ is asked. Token k is the symbol k.
TaskKind copying();

}  // namespace longhand::tasks
