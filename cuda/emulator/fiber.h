#pragma once

#include <cstddef>
#include <vector>

namespace longhand::emulator {

/// A function with a separate stack. It runs until it calls wait(), and the next resume() continues
/// it from there. Each fiber belongs to one host thread, and only the scheduler resumes it.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next resume() call body(argument) from its beginning. If the previous body has not
  /// ended, it is abandoned, and no destructors run for its stack.
  void start(void (*body)(void*), void* argument);
  /// Runs the fiber until its body calls wait() or ends.
  void resume();
  /// Called from within the body: returns to the caller of resume().
  void wait();
  bool ended() const { return ended_; }
  const void* stack_end() const;

 private:
  struct Context;
  static void enter(Fiber* self);

  /// The memory of the stack. Its lowest page is a guard page, which must not be accessed.
  std::byte* stack_ = nullptr;
  Context* context_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace longhand::emulator
