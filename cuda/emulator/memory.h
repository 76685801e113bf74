#pragma once

#include <cstddef>
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

/// What is lent is filled with NaN, and what lies between the bytes asked for and the block's end
/// is held to be untouched when the block comes back. Memory ends after `limit` bytes.
std::unique_ptr<MemorySource> device_memory(std::size_t limit);

/// Whether these bytes are of blocks that were handed out once.
bool in_device_memory(const void* address, std::size_t bytes);

}  // namespace longhand::emulator
