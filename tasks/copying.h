#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Selective copying (Arjovsky et al. 2016, in the form of Gu and Dao 2023). The prompt consists of
/// noise, in which symbols are at random places, and a mark. The answer repeats the symbols in
/// order:
///   . 7 . . 3 . 7 . ⊥ 7 3 7
/// Here, dots are noise, and ⊥ is the mark. The places of the symbols are drawn without
/// replacement. The symbols are drawn independently and uniformly. If every place has a symbol, the
/// task is plain copying. All tokens after ⊥ are scored. Token k is the symbol k.
TaskKind copying();

}  // namespace longhand::tasks
