#pragma once

#include <vector>

namespace longhand::emulator {

/// The pending asynchronous 16-byte copies of a thread into shared memory. Each copy is made as
/// late as permitted, when the thread waits for the copy's group. Until then, the destination is
/// filled with NaN. If another thread reads the destination without a barrier, tests find this
/// error by running the threads in several orders.
class Copies {
 public:
  void issue(void* to, const void* from);  // copies zeros if `from` is nullptr
  void commit();
  void wait(int but);  // waits for all groups except the last `but`

  /// begin() is called when the thread begins, and end() when it ends. end() throws an Error if
  /// copies are still pending.
  void begin();
  void end() const;

 private:
  struct Copy {
    void* to;
    const void* from;
    int group;
  };
  std::vector<Copy> pending_;  // in the order of their groups
  int groups_ = 0;             // number of committed groups
};

/// The pending asynchronous copies of the running thread of a kernel.
Copies& copies();

}  // namespace longhand::emulator
