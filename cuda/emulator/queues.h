#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

/// The work of streams that is enqueued and not yet done. By default, work is done when it is
/// enqueued. If work is deferred (emulator::defer_work), it is done as late as a device may do it:
/// when the host waits for it. Streams then continue in random order, and only events order the
/// work of one stream before that of another.
namespace longhand::emulator {

/// Becomes true when an event occurs. Each record() of an event creates another Occurred.
using Occurred = std::shared_ptr<bool>;

/// The pending work of one stream.
class Queue {
 public:
  Queue();
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Does the work now, or later if work is deferred.
  void add(std::function<void()> work);
  /// Like add(), for work of the memory allocator. It does no earlier work, so no kernel can fail
  /// during this call. After a kernel has failed, the allocator's work is still done, because the
  /// allocator later checks its results.
  void append(std::function<void()> work);
  /// Later work waits until the event has occurred. Does nothing if the event has already occurred
  /// or was never recorded.
  void add_wait(const Occurred& event);
  void finish();  // returns when all work of this queue is done

 private:
  friend class Device;
  struct Item {
    std::function<void()> work;
    Occurred after;          // the work is done only after this event; may be nullptr
    bool of_memory = false;  // enqueued by append()
  };
  std::deque<Item> items_;
};

/// True if work is deferred. The host must not expect results before it waits for them.
bool work_is_deferred();
/// Returns when the event has occurred.
void finish_until(const Occurred& event);
/// Returns when all work of all queues is done. Freeing memory waits for this, as in CUDA. Aborts
/// the program if a kernel fails, because destructors call this function.
void finish_all() noexcept;

}  // namespace longhand::emulator
