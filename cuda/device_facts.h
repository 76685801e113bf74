#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/memory.h"

namespace longhand::cuda {

/// The properties of a device that kernels and messages depend on.
struct DeviceFacts {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t shared_per_block = 0;           // maximum bytes of shared memory
  std::size_t shared_per_multiprocessor = 0;  // bytes of shared memory
  std::size_t memory = 0;                     // bytes of device memory
  std::size_t free = 0;                       // bytes of unused device memory; 0 if not queried
};
std::string text_of(const DeviceFacts& facts);

/// Maximum bytes of shared memory, static and dynamic together, that a block may use on a device of
/// compute capability major.minor. The capability must be at least 8.0. For an unknown capability,
/// returns the maximum that every device allows.
constexpr std::size_t shared_per_block(int major, int minor) {
  const bool large = major == 8 && (minor == 0 || minor == 7);
  return std::size_t{large ? 163u : major >= 9 && major <= 11 ? 227u : 99u} << 10;
}

/// Bytes of shared memory of a multiprocessor on a device of compute capability major.minor, or a
/// lower bound of this number.
constexpr std::size_t shared_per_multiprocessor(int major, int minor) {
  return shared_per_block(major, minor) + 1024;
}

/// Index of the device that this process uses, less than `devices`, the number of devices that it
/// sees. The ranks that a launcher (mpirun, srun) starts on one machine are distributed over the
/// machine's devices round robin.
int own_device(int devices);

/// The devices that this process sees, beginning with the device that it uses. Throws a one-line
/// Error if there is no driver or no device, or if the driver or the first device is too old for
/// our kernels.
std::vector<DeviceFacts> find_devices();

std::unique_ptr<MemorySource> device_memory();

}  // namespace longhand::cuda
