#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>

#include "core/memory.h"

/// The emulated device's memory: an address range that can be touched only while a kernel runs or
/// a copy is made, so that host code which reads a device pointer crashes here as it would there.
namespace longhand::emulator {

constexpr int poison = 0xff;  // NaN in every float type

/// While one lives, device memory can be read and written.
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
/// Does the work while only these bytes, or host memory, can be touched. Opening all that kernels
/// may touch takes time for every page that the device has lent. The work asks for no device
/// memory.
void touch(std::initializer_list<Bytes> bytes, const std::function<void()>& work);

/// What is lent is filled with NaN, and what lies between the bytes asked for and the block's end
/// is held to be untouched when the block comes back. Memory ends after `limit` bytes.
std::unique_ptr<MemorySource> device_memory(std::size_t limit);

/// Whether these bytes are of blocks that were handed out since the device was last empty.
bool in_device_memory(const void* address, std::size_t bytes);

}  // namespace longhand::emulator
