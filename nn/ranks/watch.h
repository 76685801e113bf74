#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Looks several times a second whether the other ranks on this machine still live, on a thread of
/// its own: whoever waits for a rank that was killed would wait for ever.
class RankWatch {
 public:
  /// Told which ranks are gone ("rank 3, process 4711 on node2"), once. `first`: no rank before
  /// this one is left on this machine, so it is the one to tell.
  using Lost = std::function<void(const std::string& ranks, bool first)>;
  /// All ranks make one at the same time.
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

  std::vector<Peer> peers_;  // on this machine
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace longhand::nn
