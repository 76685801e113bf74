#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

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

namespace emulator {

/// The compute capability of the emulated device for backends made from now on; 9.0 by default.
/// Some launches are chosen by the device's shared memory.
void set_capability(int major, int minor);

/// Makes the stand-in for cuBLASLt refuse this share of the products that have a plain one to fall
/// back to, chosen at random.
void refuse_products(double share, std::uint64_t seed = 0);

/// The kinds of products run or refused so far: types, epilogue, and whether c is added.
const std::set<std::string>& seen_products();

}  // namespace emulator
}  // namespace longhand
