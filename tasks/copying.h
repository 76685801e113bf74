#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Selective copying (Arjovsky et al. 2016, as Gu and Dao 2023 have it): symbols at random places
/// among noise, a mark, and the symbols in their order:
///   . 7 . . 3 . 7 . ⊥ 7 3 7
/// Places are drawn without replacement, symbols are independent and uniform. Where every place
/// holds a symbol it is plain copying. Asked is all that follows ⊥. Token k is the symbol k.
TaskKind copying();

}  // namespace longhand::tasks
