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
  std::size_t shared_per_block = 0;           // bytes that a block can ask for
  std::size_t shared_per_multiprocessor = 0;  // bytes
  std::size_t memory = 0;                     // bytes
  std::size_t free = 0;                       // bytes; 0 if not queried
};
std::string text_of(const DeviceFacts& facts);

/// Bytes of shared memory, static and dynamic, that a block may have on devices of a compute
/// capability from 8.0 on. Unknown ones count as the smallest.
constexpr std::size_t shared_per_block(int major, int minor) {
  const bool large = major == 8 && (minor == 0 || minor == 7);
  return std::size_t{large ? 163u : major >= 9 && major <= 11 ? 227u : 99u} << 10;
}

/// Index of the device that this process uses, among those it sees: ranks that a launcher (mpirun,
/// srun) started on one machine take its devices in turn.
int own_device(int devices);

/// The devices this process sees, the one in use first. Error in one line when there is none: no
/// driver, a driver too old, no device, or one older than our kernels.
std::vector<DeviceFacts> find_devices();

std::unique_ptr<MemorySource> device_memory();

}  // namespace longhand::cuda
