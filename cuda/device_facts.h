#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/memory.h"

namespace longhand::cuda {

/// Properties of a device that kernels and messages use.
struct DeviceFacts {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t shared_per_block = 0;  // bytes a block can ask for
  std::size_t memory = 0;            // bytes
  std::size_t free = 0;              // bytes; 0 if not queried
};
std::string text_of(const DeviceFacts& facts);

/// The devices this process sees, the one in use first. Error in one line when there is none: no
/// driver, a driver too old, no device, or one older than our kernels.
std::vector<DeviceFacts> find_devices();

std::unique_ptr<MemorySource> device_memory();

}  // namespace longhand::cuda
