#pragma once

#include <memory>

#include "core/backend.h"

namespace longhand {

/// A backend that takes no memory and computes nothing, but keeps the account of its allocator as
/// if it did: what a piece of work needs is known before it is begun, whatever its size. Tensors
/// read back as zeros. What a real backend takes for itself inside an operation is not counted.
std::shared_ptr<Backend> make_accounting_backend(BackendOptions options = {});

}  // namespace longhand
