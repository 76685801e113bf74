#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Checks several times per second, on a separate thread, whether the other ranks on this machine
/// are alive. Without it, a rank that waits for a killed rank would wait forever.
class RankWatch {
 public:
  /// Called once if ranks have ended, with a list such as "rank 3, process 4711 on node2". `first`
  /// is true on the lowest remaining rank of this machine, which should report the loss.
  using Lost = std::function<void(const std::string& ranks, bool first)>;
  /// A collective operation: all ranks must create a watch.
  RankWatch(Communicator& ranks, Lost lost);
  ~RankWatch() { stop(); }
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  void stop();

 private:
  struct Peer {
    int rank;
    int process;
    std::string name;
  };
  void work(int own, const Lost& lost) const;

  std::vector<Peer> peers_;  // the other ranks on this machine
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace longhand::nn
