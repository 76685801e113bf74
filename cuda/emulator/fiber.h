#pragma once

#include <cstddef>
#include <vector>

namespace longhand::emulator {

/// A function with a stack of its own, which runs until it waits and goes on where it waited.
/// Fibers belong to one host thread and are run from one place, the scheduler.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next resume() calls body(argument) from its beginning. A body that did not end is
  /// forgotten: nothing on its stack is destroyed.
  void start(void (*body)(void*), void* argument);
  /// Runs until the body waits or ends.
  void resume();
  /// Called within the body: back to whoever resumed it.
  void wait();
  bool ended() const { return ended_; }

 private:
  struct Context;
  static void enter(Fiber* self);

  std::byte* stack_ = nullptr;  // the mapping; its lowest page is never touched
  Context* context_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace longhand::emulator
