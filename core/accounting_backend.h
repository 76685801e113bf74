#pragma once

#include <memory>

#include "core/backend.h"

namespace longhand {

/// A backend that allocates no memory and computes nothing, but counts allocations as a real
/// backend would. It tells the memory that a piece of work needs before the work starts. Tensors
/// read back as zeros. Scratch memory that a real backend allocates within an operation is not
/// counted.
std::shared_ptr<Backend> make_accounting_backend(BackendOptions options = {});

}  // namespace longhand
