#pragma once

#include <vector>

namespace longhand::emulator {

/// A thread's asynchronous 16-byte copies into shared memory that are still pending. Each copy
/// arrives as late as allowed, when the thread waits for its group; until then its destination is
/// full of NaN. Reads by other threads before a barrier are found when threads run in another
/// order.
class Copies {
 public:
  void issue(void* to, const void* from);  // copies zeros if from is nullptr
  void commit();
  void wait(int but);  // waits for all groups except the last `but`

  /// Called when the thread begins or ends. Throws an Error if copies are still pending.
  void begin();
  void end() const;

 private:
  struct Copy {
    void* to;
    const void* from;
    int group;
  };
  std::vector<Copy> pending_;  // in group order
  int groups_ = 0;             // number of committed groups
};

/// The copies of the running thread.
Copies& copies();

}  // namespace longhand::emulator
