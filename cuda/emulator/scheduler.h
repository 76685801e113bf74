#pragma once

#include <cstdint>
#include <string>

/// Runs kernels on the CPU, thread by thread, so that they can be tested where there is no GPU.
/// Each thread of a block is a fiber; blocks run one after another. Barriers and warp operations
/// hand over to the other threads. One launch at a time, on one host thread.
namespace longhand::emulator {

struct Index3 {
  unsigned x = 1, y = 1, z = 1;
};

/// Where in a kernel's text something happens.
struct Site {
  const char* file;
  int line;
};
std::string text_of(Site site);  // "norm.cu:40"

// What a running thread sees as threadIdx, blockIdx, blockDim and gridDim.
extern Index3 thread_index, block_index, block_size, grid_size;

/// In which order threads run between two barriers, and blocks after one another. A result that
/// depends on it shows a missing barrier.
enum class Order { forward, backward, shuffled };
void set_order(Order order, std::uint64_t seed = 0);

struct Launch {
  Index3 grid, block;
  std::size_t shared_bytes = 0;
  Site site{"", 0};  // of the launch
};

/// Runs kernel(arguments) for every thread of the grid. What goes wrong is an Error that names the
/// launch, the block and the thread: a barrier not reached by all, lanes of a warp that wait for
/// different things, shared memory written past its end.
void run_grid(const Launch& launch, void (*kernel)(void*), void* arguments);

/// __syncthreads(): every thread of the block.
void block_barrier(Site site);

/// A warp operation: each lane of the mask comes with a payload; when all are there, finish() sees
/// the 32 payloads (nullptr for lanes outside the mask) and writes each lane's result into its own.
using Finish = void (*)(void* const payloads[32]);
void warp_together(unsigned mask, void* payload, Finish finish, Site site);

/// The same for a block: finish() sees the payloads of all its threads.
using FinishBlock = void (*)(void* const* payloads, int threads);
void block_together(void* payload, FinishBlock finish, Site site);

/// The launch's dynamic shared memory: the same for every thread of a block, filled with NaN when
/// the block begins.
void* shared_bytes();
bool in_shared_memory(const void* address, std::size_t bytes);

/// An Error with kernel, block and thread before the message.
[[noreturn]] void fail_in_kernel(const std::string& message);

}  // namespace longhand::emulator
