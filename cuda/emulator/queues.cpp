#include "cuda/emulator/queues.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/emulator/backend.h"
#include "cuda/emulator/memory.h"

namespace longhand::emulator {

/// The queues of all streams. While work is deferred, only one host thread at a time may use them.
class Device {
 public:
  static Device& the_one() {
    static Device device;
    return device;
  }

  void open(Queue* queue) {
    const std::lock_guard lock(mutex_);
    queues_.push_back(queue);
  }
  void close(Queue* queue) {
    const std::lock_guard lock(mutex_);
    std::erase(queues_, queue);
  }

  void defer(bool deferred, std::uint64_t seed) {
    finish([] { return false; });
    deferred_ = deferred;
    random_.seed(seed);
  }
  bool deferred() const { return deferred_; }

  /// Sometimes does one piece of work although the host does not wait for it, as a fast device
  /// would.
  void hurry() {
    constexpr double chance = 0.25;
    if (std::bernoulli_distribution(chance)(random_)) do_any();
  }

  /// Does work until `done` returns true or no work is left.
  template <class Done>
  void finish(const Done& done) {
    if (done()) return;
    // Each kernel opens the memory too. That takes no time while it is open already.
    const Access access;
    while (!done() && do_any()) {
    }
  }

 private:
  /// Does the next work of a queue. Returns false if no work is left. The queue is chosen at
  /// random, but usually remains the same for a while, so that one stream gets far ahead of
  /// another.
  bool do_any() {
    std::vector<Queue*> ready;
    for (Queue* const queue : queues_) {
      if (queue->items_.empty()) continue;
      const Occurred& after = queue->items_.front().after;
      if (!after || *after) ready.push_back(queue);
    }
    if (ready.empty()) return false;
    constexpr std::uint64_t mean_run = 8;
    if (std::ranges::find(ready, last_) == ready.end() || random_() % mean_run == 0) {
      last_ = ready[random_() % ready.size()];
    }
    auto& items = last_->items_;
    const std::function<void()> work = std::move(items.front().work);
    items.pop_front();
    try {
      if (work) work();
    } catch (...) {
      // After an error, a device does no more work. Kernels and copies that are still enqueued are
      // therefore dropped, and only the work of the memory allocator remains.
      for (Queue* const queue : queues_) {
        std::erase_if(queue->items_, [](const Queue::Item& item) { return !item.of_memory; });
      }
      throw;
    }
    return true;
  }

  std::mutex mutex_;
  std::vector<Queue*> queues_;
  Queue* last_ = nullptr;  // the queue whose work was done last; it may no longer exist
  bool deferred_ = false;
  std::mt19937_64 random_;
};

Queue::Queue() { Device::the_one().open(this); }

Queue::~Queue() {
  if (!items_.empty()) finish_all();
  Device::the_one().close(this);
}

void Queue::add(std::function<void()> work) {
  if (!work_is_deferred()) return work();
  items_.push_back({std::move(work), nullptr});
  Device::the_one().hurry();
}

void Queue::append(std::function<void()> work) {
  if (!work_is_deferred()) return work();
  items_.push_back({std::move(work), nullptr, true});
}

void Queue::add_wait(const Occurred& event) {
  if (event && !*event) items_.push_back({nullptr, event});
}

void Queue::finish() {
  Device::the_one().finish([&] { return items_.empty(); });
}

bool work_is_deferred() { return Device::the_one().deferred(); }

void finish_until(const Occurred& event) {
  if (event) Device::the_one().finish([&] { return *event; });
}

void finish_all() noexcept {
  try {
    Device::the_one().finish([] { return false; });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "emulator: %s\n", error.what());
    std::abort();
  }
}

void defer_work(bool deferred, std::uint64_t seed) { Device::the_one().defer(deferred, seed); }

}  // namespace longhand::emulator
