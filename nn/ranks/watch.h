#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Checks several times per second whether the other ranks on this machine are alive. Uses a
/// separate thread. Without these checks, a rank that waits for a killed rank would wait forever.
class RankWatch {
 public:
  /// Called once if ranks have ended. `ranks` lists them, for example "rank 3, process 4711 on
  /// node2". `first` is true on the lowest rank of this machine that still runs. That rank should
  /// report that ranks have ended.
  using Lost = std::function<void(const std::string& ranks, bool first)>;
  /// A collective operation: every rank must create a watch.
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
