#pragma once

#include <cstddef>
#include <vector>

namespace longhand::emulator {

/// A function with a separate stack. It runs until it waits and continues from there later. Fibers
/// belong to one host thread, and only the scheduler resumes them.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next resume() call body(argument) from its beginning. A body that has not ended is
  /// abandoned: nothing on its stack is destroyed.
  void start(void (*body)(void*), void* argument);
  /// Runs the fiber until its body waits or ends.
  void resume();
  /// Called from within the body: returns to the caller of resume().
  void wait();
  bool ended() const { return ended_; }
  const void* stack_end() const;

 private:
  struct Context;
  static void enter(Fiber* self);

  /// the mapping; its lowest page is a guard page, which is never accessed
  std::byte* stack_ = nullptr;
  Context* context_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace longhand::emulator
