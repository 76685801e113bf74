#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "core/backend.h"
#include "cuda/emulator/scheduler.h"

namespace longhand {

/// Creates a CUDA backend whose kernels are run by the emulator on the CPU. set_order() chooses the
/// order of threads and blocks.
std::shared_ptr<Backend> make_emulated_cuda_backend(BackendOptions options = {});

/// Counts of the work enqueued on emulated devices so far. `single` counts kernels, matrix products
/// and copies outside CUDA graphs, and `graphs` counts launches of CUDA graphs.
struct GivenWork {
  std::int64_t single = 0, graphs = 0;
};
GivenWork given_work();

namespace emulator {

/// Sets the compute capability of the emulated device for backends created from now on. The default
/// is 9.0. The capability determines the size of shared memory, on which some launches depend.
void set_capability(int major, int minor);

/// After defer_work(true), streams do their work at random times, often only when the host waits
/// for it. Until a download is done, its destination contains NaN. defer_work(false) finishes all
/// pending work; later work is done at once.
void defer_work(bool deferred, std::uint64_t seed = 0);
/// While an instance lives, the work of streams is deferred (defer_work).
class DeferredWork {
 public:
  explicit DeferredWork(std::uint64_t seed = 1) { defer_work(true, seed); }
  ~DeferredWork() { defer_work(false); }
  DeferredWork(const DeferredWork&) = delete;
  DeferredWork& operator=(const DeferredWork&) = delete;
};

/// While an instance lives, kernels run in Order::interleaved, in which several resident blocks
/// alternate.
class InterleavedBlocks {
 public:
  explicit InterleavedBlocks(std::uint64_t seed = 1) { set_order(Order::interleaved, seed); }
  ~InterleavedBlocks() { set_order(Order::forward); }
  InterleavedBlocks(const InterleavedBlocks&) = delete;
  InterleavedBlocks& operator=(const InterleavedBlocks&) = delete;
};

/// How emulated tensor cores add products, in kernels and in the replacement for cuBLASLt. `plain`,
/// the default, adds one product after another in f32. sm_80 and sm_90 add as devices of compute
/// capability 8.0 and 9.0 do (emulator/fused_sum.h).
enum class TensorCores { plain, sm_80, sm_90 };
void set_tensor_cores(TensorCores arithmetic);

/// From now on, the emulator's replacement for cuBLASLt refuses each fused product with probability
/// `share`. A product is fused if it has an epilogue, a bf16 result or an added matrix. For a
/// refused product, the backend uses a plain product instead.
void refuse_products(double share, std::uint64_t seed = 0);

/// The kinds of matrix products that were run or refused so far. Each text names the types and the
/// epilogue and says whether a matrix c is added.
const std::set<std::string>& seen_products();

}  // namespace emulator
}  // namespace longhand
