#pragma once

#include <cstdint>
#include <string>

/// Runs kernels on the CPU, thread by thread, so that they can be tested without a GPU. Each thread
/// of a block is a fiber. Barriers and warp operations switch to the other threads of the block.
/// Blocks run one after another, or several of them alternate. Only one launch runs at a time.
namespace longhand::emulator {

struct Index3 {
  unsigned x = 1, y = 1, z = 1;
};

/// A source location in a kernel.
struct Site {
  const char* file;
  int line;
};
std::string text_of(Site site);  // for example "norm.cu:40"

// The threadIdx, blockIdx, blockDim and gridDim of the running thread.
extern Index3 thread_index, block_index, block_size, grid_size;

/// The order in which blocks run, and in which the threads of a block run between two barriers. A
/// result that depends on the order reveals a missing barrier.
///
/// `interleaved` shuffles threads and blocks, and two to four blocks are resident at the same time:
/// one of them runs for a while, then another one. As on a device, a block stays resident until it
/// ends. If all resident blocks wait for blocks that have not started, this is an error. Each
/// resident block has an OS thread, because static shared memory is a thread_local variable. Only
/// one of these threads runs at a time, so the same seed gives the same order.
enum class Order { forward, backward, shuffled, interleaved };
void set_order(Order order, std::uint64_t seed = 0);

struct Launch {
  Index3 grid, block;
  std::size_t shared_bytes = 0;
  Site site{"", 0};              // where the kernel is launched
  const void* kernel = nullptr;  // the kernel's address
};

/// Runs kernel(arguments) for every thread of the grid. Throws an Error if not all threads reach a
/// barrier, if lanes of a warp wait for different operations, if all blocks wait for one another,
/// or if shared memory is written past its end. The Error names the launch, the block and the
/// thread.
void run_grid(const Launch& launch, void (*kernel)(void*), void* arguments);

/// __syncthreads(), called by every thread of the block.
void block_barrier(Site site);

/// A warp operation. Each lane of the mask passes a payload. When all lanes have arrived, finish()
/// receives the 32 payloads (nullptr for lanes outside the mask) and writes each lane's result into
/// its payload.
using Finish = void (*)(void* const payloads[32]);
void warp_together(unsigned mask, void* payload, Finish finish, Site site);

/// An operation of all threads of a block. Each thread passes a payload. When all threads have
/// arrived, finish() receives all payloads and writes each thread's result into its payload.
using FinishBlock = void (*)(void* const* payloads, int threads);
void block_together(void* payload, FinishBlock finish, Site site);

/// Lets other threads of the block run before it returns. With Order::interleaved, other blocks may
/// run as well. Every loop that waits until another block writes a word must call this function.
void let_others_run(Site site);

/// The launch's dynamic shared memory, shared by all threads of a block and filled with NaN when
/// the block begins.
void* shared_bytes();
bool in_shared_memory(const void* address, std::size_t bytes);

/// Throws an Error whose text names the kernel, the block and the thread, followed by the message.
[[noreturn]] void fail_in_kernel(const std::string& message);

}  // namespace longhand::emulator
