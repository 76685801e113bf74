#pragma once

#include <memory>

#include "core/backend.h"

namespace longhand {

/// A backend that computes nothing and allocates no memory, but counts allocations as a real
/// backend does. It is used to estimate how much memory a computation needs before it starts.
/// Reading a tensor returns zeros. Scratch memory that a real backend allocates within an operation
/// is not counted.
std::shared_ptr<Backend> make_accounting_backend(BackendOptions options = {});

}  // namespace longhand
