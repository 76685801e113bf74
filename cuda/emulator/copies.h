#pragma once

#include <vector>

namespace longhand::emulator {

/// A thread's copies of 16 bytes into shared memory that are on their way. A copy arrives as late
/// as it may, when the thread waits for its group; until then its place is full of NaN. That nobody
/// else reads it before a barrier shows where threads run in another order.
class Copies {
 public:
  void issue(void* to, const void* from);  // zeros where from is nullptr
  void commit();
  void wait(int but);  // for all groups but the last ones

  /// The thread begins, or ends: an error if copies are still on their way.
  void begin();
  void end() const;

 private:
  struct Copy {
    void* to;
    const void* from;
    int group;
  };
  std::vector<Copy> pending_;  // in the order of their groups
  int groups_ = 0;             // committed
};

/// Those of the thread that runs.
Copies& copies();

}  // namespace longhand::emulator
