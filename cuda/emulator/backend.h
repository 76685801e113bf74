#pragma once

#include <cstdint>
#include <memory>

#include "core/backend.h"
#include "cuda/emulator/scheduler.h"

namespace longhand {

/// Creates the CUDA backend with its kernels run by the emulator. set_order() chooses the order of
/// threads and blocks.
std::shared_ptr<Backend> make_emulated_cuda_backend(BackendOptions options = {});

/// Work enqueued on emulated devices so far: single kernels, products and copies, and graphs.
struct GivenWork {
  std::int64_t single = 0, graphs = 0;
};
GivenWork given_work();

}  // namespace longhand
