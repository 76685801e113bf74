#include <cstring>

#include "core/error.h"
#include "cuda/device_facts.h"
#include "cuda/emulator/memory.h"
#include "cuda/emulator/scheduler.h"
#include "cuda/launch.h"
#include "cuda/stream.h"

/// What cuda/runtime.cpp does on a device: here each call is done when it returns.
namespace longhand::cuda {

Stream::Stream() = default;
Stream::~Stream() = default;
void Stream::wait(const Event&) {}
void Stream::synchronize() {}

void Stream::copy(void* to, const void* from, std::size_t bytes) {
  const emulator::Access access;
  if (bytes > 0) std::memmove(to, from, bytes);
}
void Stream::zero(void* to, std::size_t bytes) {
  const emulator::Access access;
  if (bytes > 0) std::memset(to, 0, bytes);
}
void Stream::upload(void* to, const void* from, std::size_t bytes) { copy(to, from, bytes); }
void Stream::download(void* to, const void* from, std::size_t bytes) { copy(to, from, bytes); }

Event::Event() = default;
Event::~Event() = default;
void Event::record(Stream&) {}
void Event::synchronize() {}

PinnedMemory::PinnedMemory(std::size_t bytes) : data_(new std::byte[bytes]) {}
PinnedMemory::~PinnedMemory() { delete[] data_; }

void emulate_kernel(const Grid& grid, int threads, std::size_t shared_bytes, void (*body)(void*),
                    void* arguments) {
  const emulator::Launch launch{
      .grid = {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
               static_cast<unsigned>(grid.z)},
      .block = {static_cast<unsigned>(threads), 1, 1},
      .shared_bytes = shared_bytes,
      .site = {grid.file, grid.line}};
  emulator::run_grid(launch, body, arguments);
}

// Few multiprocessors, so that loops over a grid go round more than once.
std::vector<DeviceFacts> find_devices() {
  return {{.name = "emulated",
           .major = 9,
           .minor = 0,
           .multiprocessors = 3,
           .shared_per_block = std::size_t{227} << 10,
           .memory = std::size_t{8} << 30,
           .free = std::size_t{8} << 30}};
}

std::unique_ptr<MemorySource> device_memory() {
  return emulator::device_memory(std::size_t{8} << 30);
}

}  // namespace longhand::cuda
