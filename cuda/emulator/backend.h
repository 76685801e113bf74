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

/// Work enqueued on emulated devices so far. single: kernels, products and copies outside graphs.
/// graphs: launches of graphs.
struct GivenWork {
  std::int64_t single = 0, graphs = 0;
};
GivenWork given_work();

namespace emulator {

/// Sets the compute capability of the emulated device for backends created from now on. The default
/// is 9.0. The capability determines the size of shared memory, on which some launches depend.
void set_capability(int major, int minor);

/// Until defer_work(false), streams do their work as late as a device may, in random order, and
/// downloaded numbers are NaN before the host has waited for them. Then finishes all pending work.
void defer_work(bool deferred, std::uint64_t seed = 0);
/// Defers work while it lives.
class DeferredWork {
 public:
  explicit DeferredWork(std::uint64_t seed = 1) { defer_work(true, seed); }
  ~DeferredWork() { defer_work(false); }
  DeferredWork(const DeferredWork&) = delete;
  DeferredWork& operator=(const DeferredWork&) = delete;
};

/// Interleaves blocks while it lives (Order::interleaved).
class InterleavedBlocks {
 public:
  explicit InterleavedBlocks(std::uint64_t seed = 1) { set_order(Order::interleaved, seed); }
  ~InterleavedBlocks() { set_order(Order::forward); }
  InterleavedBlocks(const InterleavedBlocks&) = delete;
  InterleavedBlocks& operator=(const InterleavedBlocks&) = delete;
};

/// How tensor cores add products, in kernels and in the replacement for cuBLASLt: f32 sums in order
/// (the default), or like a device of compute capability 8.0 or 9.0 (emulator/fused_sum.h).
enum class TensorCores { plain, sm_80, sm_90 };
void set_tensor_cores(TensorCores arithmetic);

/// From now on, the emulator's replacement for cuBLASLt refuses a random share of the fused
/// products, so that the backend uses a plain product instead.
void refuse_products(double share, std::uint64_t seed = 0);

/// The kinds of products that were run or refused so far: types, epilogue, and whether c is added.
const std::set<std::string>& seen_products();

}  // namespace emulator
}  // namespace longhand
