#include <cstring>
#include <vector>

#include "core/error.h"
#include "cuda/device_facts.h"
#include "cuda/emulator/backend.h"
#include "cuda/emulator/give.h"
#include "cuda/emulator/memory.h"
#include "cuda/emulator/scheduler.h"
#include "cuda/launch.h"
#include "cuda/stream.h"

/// Replaces cuda/runtime.cpp. The work of each call is finished when the call returns, unless the
/// work is recorded.
namespace longhand {
namespace {

GivenWork given;

struct {
  int major = 9, minor = 0;
} capability;

}  // namespace

void emulator::set_capability(int major, int minor) { capability = {major, minor}; }

GivenWork given_work() { return given; }

namespace cuda {
namespace {

using Recording = std::vector<std::function<void()>>;

}  // namespace

/// A stream's handle points to the recording in progress.
Stream::Stream() = default;
Stream::~Stream() { delete static_cast<Recording*>(handle_); }
void Stream::wait(const Event&) {}
void Stream::synchronize() {}

void Stream::begin_recording() {
  handle_ = new Recording;
  recording_ = true;
}
std::unique_ptr<Graph> Stream::end_recording() {
  recording_ = false;
  return std::make_unique<Graph>(std::exchange(handle_, nullptr));
}
void Stream::drop_recording() noexcept {
  recording_ = false;
  delete static_cast<Recording*>(std::exchange(handle_, nullptr));
}
Graph::~Graph() { delete static_cast<Recording*>(handle_); }
void Graph::launch(Stream&) {
  ++given.graphs;
  for (const auto& work : *static_cast<const Recording*>(handle_)) work();
}

void give(Stream& stream, std::function<void()> work) {
  if (stream.recording()) {
    static_cast<Recording*>(stream.handle())->push_back(std::move(work));
  } else {
    ++given.single;
    work();
  }
}

void Stream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  give(*this, [=] {
    emulator::touch({{to, bytes}, {from, bytes}}, [&] { std::memmove(to, from, bytes); });
  });
}
void Stream::zero(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  give(*this, [=] { emulator::touch({{to, bytes}}, [&] { std::memset(to, 0, bytes); }); });
}
void Stream::upload(void* to, const void* from, std::size_t bytes) { copy(to, from, bytes); }
void Stream::download(void* to, const void* from, std::size_t bytes) { copy(to, from, bytes); }

Event::Event() = default;
Event::~Event() = default;
void Event::record(Stream&) {}
void Event::synchronize() {}

PinnedMemory::PinnedMemory(std::size_t bytes) : data_(new std::byte[bytes]) {}
PinnedMemory::~PinnedMemory() { delete[] data_; }

void emulate_kernel(Stream& stream, const Grid& grid, int threads, std::size_t shared_bytes,
                    std::function<void()> kernel, const void* address) {
  const emulator::Launch launch{
      .grid = {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
               static_cast<unsigned>(grid.z)},
      .block = {static_cast<unsigned>(threads), 1, 1},
      .shared_bytes = shared_bytes,
      .site = {grid.file, grid.line},
      .kernel = address};
  give(stream, [launch, kernel = std::move(kernel)]() mutable {
    emulator::run_grid(
        launch, [](void* of) { (*static_cast<std::function<void()>*>(of))(); }, &kernel);
  });
}

// Few multiprocessors, so that loops with the grid's stride iterate more than once.
std::vector<DeviceFacts> find_devices() {
  const std::size_t shared = shared_per_block(capability.major, capability.minor);
  return {{.name = "emulated",
           .major = capability.major,
           .minor = capability.minor,
           .multiprocessors = 3,
           .shared_per_block = shared,
           .shared_per_multiprocessor = shared + 1024,
           .memory = std::size_t{8} << 30,
           .free = std::size_t{8} << 30}};
}

std::unique_ptr<MemorySource> device_memory() {
  return emulator::device_memory(std::size_t{8} << 30);
}

}  // namespace cuda
}  // namespace longhand
