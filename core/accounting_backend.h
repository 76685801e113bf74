#pragma once

#include <memory>

#include "core/backend.h"

namespace longhand {

/// A backend that computes nothing and allocates no memory, but counts allocations in the same way
/// as a real backend. Programs use it to estimate, before a computation starts, how much memory the
/// computation needs. All values that are read from a tensor are zero. Scratch memory that a real
/// backend allocates within an operation is not counted.
std::shared_ptr<Backend> make_accounting_backend(BackendOptions options = {});

}  // namespace longhand
