#pragma once

#include <atomic>
#include <string_view>
#include <thread>

#include "core/error.h"

namespace longhand {

/// Detects that two threads call an object at the same time. During a call, the same thread may
/// call the object again.
class OneThread {
 public:
  /// Marks the object as in use by this thread, from construction to destruction. The constructor
  /// throws an Error if another thread is using the object.
  class Call {
   public:
    Call(OneThread& object, std::string_view owner, std::string_view name) : object_(object) {
      std::thread::id running;  // initially no thread
      const std::thread::id own = std::this_thread::get_id();
      outermost_ = object.running_.compare_exchange_strong(running, own, std::memory_order_acquire);
      LONGHAND_CHECK(outermost_ || running == own, name, ": another thread is using this ", owner,
                     " backend; only one thread at a time may use a backend");
    }
    ~Call() {
      if (outermost_) object_.running_.store({}, std::memory_order_release);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    OneThread& object_;
    bool outermost_;
  };

 private:
  std::atomic<std::thread::id> running_{};  // the thread that is using the object; default: none
};

}  // namespace longhand
