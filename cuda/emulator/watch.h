#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Watches every access of a kernel to shared and device memory, in a library whose kernels are
/// compiled with -fsanitize=thread (cuda/emulator/CMakeLists.txt). The compiler then calls
/// __tsan_read4(address) and the like before each access; watch.cpp defines these functions.
///
/// An access conflicts with another thread's access to the same bytes, at least one of them a write
/// and not both atomic, if neither happens before the other by CUDA's rules:
///   __syncthreads() orders all threads of the block,
///   __syncwarp() orders the lanes of the warp; shuffles and tensor cores order nothing,
///   a word stored after a fence orders everything before the block's last barrier before what
///   another block does after it has read the word, fenced and passed a barrier.
/// So a race is found whatever the order in which threads happen to run. Also found are reads of
/// shared memory that the block never wrote, accesses out of bounds or off their boundary, and
/// launches whose shared memory, static and dynamic, exceeds what a device allows.
namespace longhand::emulator::watch {

#if defined(LONGHAND_WATCHED)

struct Region {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
};
/// `room` contains `shared` and the bytes around it, which no kernel may touch.
void begin_launch(Region shared, Region room, const void* kernel);
void end_launch();
void begin_block();
/// The thread that runs from now on, with the end of its stack, or none while the scheduler runs.
void run_thread(std::size_t thread, const void* stack_end);
void run_none();
/// What was wrong since the launch began; empty if nothing was.
const std::string& fault();

void barrier();
void warp_barrier();
void fence();
void atomic(const void* address, std::size_t bytes);
/// A read of memory on behalf of the running thread by the emulator itself.
void read(const void* address, std::size_t bytes);
void copy_issued(const void* to, std::size_t bytes);
void copy_arrived(const void* to, std::size_t bytes);

#else

struct Region {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
};
inline void begin_launch(Region, Region, const void*) {}
inline void end_launch() {}
inline void begin_block() {}
inline void run_thread(std::size_t, const void*) {}
inline void run_none() {}
inline const std::string& fault() {
  static const std::string none;
  return none;
}
inline void barrier() {}
inline void warp_barrier() {}
inline void fence() {}
inline void atomic(const void*, std::size_t) {}
inline void read(const void*, std::size_t) {}
inline void copy_issued(const void*, std::size_t) {}
inline void copy_arrived(const void*, std::size_t) {}

#endif

/// A kernel of this program, with its launches so far.
struct Kernel {
  std::string name;
  std::int64_t launches = 0;
  std::size_t static_bytes = 0, dynamic_bytes = 0;  // the most shared memory that a launch used
};
/// All kernels that are compiled into this program. Only in the watched library.
std::vector<Kernel> kernels();

}  // namespace longhand::emulator::watch
