#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>

#include "core/memory.h"
#include "cuda/emulator/queues.h"

/// The emulated device's memory: an address range that is accessible only while a kernel or a copy
/// runs. Host code that reads a device pointer therefore crashes here, as it would with a device.
namespace longhand::emulator {

constexpr int poison = 0xff;  // floats of any type are NaN if all their bytes have this value

/// While an instance lives, device memory can be read and written.
class Access {
 public:
  Access();
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

struct Bytes {
  const void* address = nullptr;
  std::size_t count = 0;
};
/// Runs the work while only these bytes and host memory are accessible. This is faster than Access,
/// which makes every page in use accessible. The work must not allocate device memory.
void touch(std::initializer_list<Bytes> bytes, const std::function<void()>& work);

/// Creates a source of emulated device memory with a total of `limit` bytes. Allocated blocks are
/// filled with NaN. When a block is returned, the source checks that the bytes between the
/// requested size and the block's end are unchanged. Filling and checking are enqueued like work of
/// a stream, because a caching allocator reuses a block while earlier work of the stream is
/// pending.
std::unique_ptr<MemorySource> device_memory(std::size_t limit);
/// Assigns the queue to all results of device_memory() that have no queue yet. They fill and check
/// their blocks on this queue. A new stream calls this function with its own queue.
void order_memory(const std::shared_ptr<Queue>& queue);

/// The first address of the device memory.
const void* device_begin();

/// True if these bytes are in the used part of device memory. This part ends after the last block
/// and becomes empty when no block is in use.
bool in_device_memory(const void* address, std::size_t bytes);

}  // namespace longhand::emulator
