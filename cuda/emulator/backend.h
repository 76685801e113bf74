#pragma once

#include <cstdint>
#include <memory>

#include "core/backend.h"
#include "cuda/emulator/scheduler.h"

namespace longhand {

/// The CUDA backend with its kernels run by the emulator; set_order() says in which order.
std::shared_ptr<Backend> make_emulated_cuda_backend(BackendOptions options = {});

/// What was given to emulated devices so far: kernels, products and copies by themselves, and
/// graphs.
struct GivenWork {
  std::int64_t single = 0, graphs = 0;
};
GivenWork given_work();

}  // namespace longhand
