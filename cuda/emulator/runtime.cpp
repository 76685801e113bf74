#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "cuda/device_facts.h"
#include "cuda/emulator/backend.h"
#include "cuda/emulator/give.h"
#include "cuda/emulator/memory.h"
#include "cuda/emulator/queues.h"
#include "cuda/emulator/scheduler.h"
#include "cuda/launch.h"
#include "cuda/stream.h"

/// The emulator's replacement for cuda/runtime.cpp: streams, graphs, events, pinned memory and
/// launches. The work of each call is done when the call returns, unless the work is recorded in a
/// graph or deferred (defer_work).
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

/// The state of a stream, to which its handle points.
struct StreamState {
  std::shared_ptr<emulator::Queue> queue = std::make_shared<emulator::Queue>();
  std::shared_ptr<Recording> recording;
};
StreamState& state_of(const Stream& stream) { return *static_cast<StreamState*>(stream.handle()); }
emulator::Occurred& occurred_of(const Event& event) {
  return *static_cast<emulator::Occurred*>(event.handle());
}

/// The begin and end of each block of pinned memory.
struct {
  std::mutex mutex;
  std::map<const std::byte*, const std::byte*> blocks;

  bool has(const void* at) {
    const std::lock_guard lock(mutex);
    const auto* const address = static_cast<const std::byte*>(at);
    const auto after = blocks.upper_bound(address);
    return after != blocks.begin() && address < std::prev(after)->second;
  }
} pinned;

}  // namespace

Stream::Stream() : handle_(new StreamState) { emulator::order_memory(state_of(*this).queue); }
Stream::~Stream() { delete static_cast<StreamState*>(handle_); }
void Stream::wait(const Event& event) { state_of(*this).queue->add_wait(occurred_of(event)); }
void Stream::synchronize() { state_of(*this).queue->finish(); }

void Stream::begin_recording() {
  state_of(*this).recording = std::make_shared<Recording>();
  recording_ = true;
}
std::unique_ptr<Graph> Stream::end_recording() {
  recording_ = false;
  return std::make_unique<Graph>(
      new std::shared_ptr<Recording>(std::move(state_of(*this).recording)));
}
void Stream::drop_recording() noexcept {
  recording_ = false;
  state_of(*this).recording.reset();
}
Graph::~Graph() { delete static_cast<std::shared_ptr<Recording>*>(handle_); }
void Graph::launch(Stream& stream) {
  ++given.graphs;
  const auto recording = *static_cast<std::shared_ptr<Recording>*>(handle_);
  for (std::size_t i = 0; i < recording->size(); ++i) {
    state_of(stream).queue->add([recording, i] { (*recording)[i](); });
  }
}

void give(Stream& stream, std::function<void()> work) {
  StreamState& state = state_of(stream);
  if (stream.recording()) {
    state.recording->push_back(std::move(work));
  } else {
    ++given.single;
    state.queue->add(std::move(work));
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
/// As in CUDA, pinned memory is read when the copy is done, and other memory is read before this
/// call returns.
void Stream::upload(void* to, const void* from, std::size_t bytes) {
  if (!emulator::work_is_deferred() || recording() || pinned.has(from)) {
    return copy(to, from, bytes);
  }
  const auto* const begin = static_cast<const std::byte*>(from);
  give(*this, [to, kept = std::vector<std::byte>(begin, begin + bytes)] {
    emulator::touch({{to, kept.size()}},
                    [&] { std::ranges::copy(kept, static_cast<std::byte*>(to)); });
  });
}
/// If work is deferred (defer_work), the destination contains NaN until the copy is done.
void Stream::download(void* to, const void* from, std::size_t bytes) {
  if (emulator::work_is_deferred()) std::memset(to, emulator::poison, bytes);
  copy(to, from, bytes);
}

Event::Event() : handle_(new emulator::Occurred) {}
Event::~Event() { delete static_cast<emulator::Occurred*>(handle_); }
void Event::record(Stream& stream) {
  LONGHAND_CHECK(!stream.recording(), "emulator: an event cannot be recorded in a CUDA graph");
  const auto occurred = std::make_shared<bool>(false);
  occurred_of(*this) = occurred;
  state_of(stream).queue->add([occurred] { *occurred = true; });
}
void Event::synchronize() { emulator::finish_until(occurred_of(*this)); }

PinnedMemory::PinnedMemory(std::size_t bytes) : data_(new std::byte[bytes]) {
  const std::lock_guard lock(pinned.mutex);
  pinned.blocks.emplace(data_, data_ + bytes);
}
PinnedMemory::~PinnedMemory() {
  emulator::finish_all();
  const std::lock_guard lock(pinned.mutex);
  pinned.blocks.erase(data_);
  delete[] data_;
}

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

// The emulated device has only three multiprocessors. This makes grids small, so that loops with
// the grid's stride iterate more than once.
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
