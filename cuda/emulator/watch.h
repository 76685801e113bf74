#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Watches every access of a kernel to shared and device memory, in a library whose kernels are
/// compiled with -fsanitize=thread (cuda/emulator/CMakeLists.txt). Before each access, the compiled
/// code calls a function such as __tsan_read4(address), which watch.cpp defines.
///
/// Two accesses of different threads to the same bytes are a race if at least one is a write, they
/// are not both atomic, and neither happens before the other. CUDA's rules define what happens
/// before what:
///   __syncthreads() orders the accesses of all threads of the block.
///   __syncwarp() orders the accesses of the warp's lanes. Shuffles and tensor cores order nothing.
///   A flag, a word that one block stores and another block reads, orders accesses of both blocks.
///   One block passes a barrier, executes a fence and stores the flag. The other block reads the
///   flag, executes a fence and passes a barrier. Everything before the first barrier happens
///   before everything after the second.
/// A race is therefore found in whatever order the threads run. The watch also finds reads of
/// shared memory that the block never wrote, accesses that are out of bounds or not aligned, and
/// launches with more static and dynamic shared memory than a device allows.
namespace longhand::emulator::watch {

#if defined(LONGHAND_WATCHED)

struct Region {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
};
void begin_launch(std::size_t shared_bytes, const void* kernel);
void end_launch();
/// Reports that block `number` of the grid begins in a slot, one of the scheduler's places for
/// resident blocks. `shared` is the block's dynamic shared memory. `room` also contains the bytes
/// around this memory, which no kernel may touch. Must be called by the OS thread that runs the
/// block.
void begin_block(std::size_t slot, Region shared, Region room, std::uint64_t number);
/// Reports that a thread of a kernel continues: thread number `thread` of the block in this slot
/// (see begin_block). Its stack ends at `stack_end`.
void run_thread(std::size_t slot, std::size_t thread, const void* stack_end);
/// Reports that no thread of a kernel runs, because the scheduler continues.
void run_none();
/// Describes the first fault since the launch began, or is empty if there was no fault.
const std::string& fault();

void barrier();
void warp_barrier();
void fence();
void atomic(const void* address, std::size_t bytes);
/// The emulator calls this function when it reads memory on behalf of the running thread.
void read(const void* address, std::size_t bytes);
void copy_issued(const void* to, std::size_t bytes);
void copy_arrived(const void* to, std::size_t bytes);

#else

struct Region {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
};
inline void begin_launch(std::size_t, const void*) {}
inline void end_launch() {}
inline void begin_block(std::size_t, Region, Region, std::uint64_t) {}
inline void run_thread(std::size_t, std::size_t, const void*) {}
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

/// A kernel of this program, and the number of its launches so far.
struct Kernel {
  std::string name;
  std::int64_t launches = 0;
  // maximum bytes of static and of dynamic shared memory that any launch used
  std::size_t static_bytes = 0, dynamic_bytes = 0;
};
/// All kernels that are compiled into this program. Defined only in the library whose kernels are
/// compiled with checks of memory accesses.
std::vector<Kernel> kernels();

}  // namespace longhand::emulator::watch
