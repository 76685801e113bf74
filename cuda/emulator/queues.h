#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

/// The work of streams that is enqueued and not yet done. By default, work is done when it is
/// enqueued. If work is deferred (emulator::defer_work), it is done at a random later time, often
/// only when the host waits for it. The streams then do their work in random order, and only events
/// ensure that work of one stream is done before work of another.
namespace longhand::emulator {

/// Points to a bool that becomes true when an event occurs. Each record() of an event creates a new
/// bool.
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
  /// Adds work of the memory allocator. It differs from add() in two ways. While work is deferred,
  /// add() sometimes does enqueued work, in which a kernel may fail; append() only enqueues. When a
  /// kernel fails, enqueued work from add() is dropped; enqueued work from append() is still done,
  /// because the allocator later checks the results of this work.
  void append(std::function<void()> work);
  /// Work that is added to this queue from now on waits until the event has occurred. Does nothing
  /// if the event has already occurred or was never recorded.
  void add_wait(const Occurred& event);
  void finish();  // returns when all work of this queue is done

 private:
  friend class Device;
  struct Item {
    std::function<void()> work;
    Occurred after;          // the work is done only after this event; may be nullptr
    bool of_memory = false;  // true if this is work of the memory allocator
  };
  std::deque<Item> items_;
};

/// True if work is deferred (emulator::defer_work). The host must then wait for results before it
/// reads them.
bool work_is_deferred();
/// Does pending work until the event has occurred.
void finish_until(const Occurred& event);
/// Does all pending work of all queues. Called before memory is freed, which waits for all work in
/// CUDA too. Aborts the program if a kernel fails, because destructors call this function.
void finish_all() noexcept;

}  // namespace longhand::emulator
