#pragma once

#include <cstdint>
#include <memory>

#include "core/backend.h"
#include "cuda/emulator/scheduler.h"

namespace longhand {

/// The CUDA backend with its kernels run by the emulator; set_order() says in which order.
std::shared_ptr<Backend> make_emulated_cuda_backend(BackendOptions options = {});

}  // namespace longhand
