#include "nn/ranks/watch.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

namespace longhand::nn {
namespace {

std::string host_name() {
  std::array<char, 65> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return "?";
  return host.data();
}

/// Identifies the machine and the namespace of its process ids. If two processes get the same text,
/// a process id refers to the same process in both.
std::string where_numbers_hold() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::error_code error;
  return boot + std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
}

bool lives(int process) {
  if (::kill(process, 0) != 0 && errno == ESRCH) return false;
  // A killed process still exists, in state Z, until its parent waits for it. /proc/4711/stat then
  // begins with "4711 (longhand) Z".
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t end = stat.rfind(") ");
  return end == std::string::npos || (stat[end + 2] != 'Z' && stat[end + 2] != 'X');
}

}  // namespace

RankWatch::RankWatch(Communicator& ranks, Lost lost) {
  const std::string place = where_numbers_hold();
  const auto places = ranks.gather(std::string_view(place));
  const auto hosts = ranks.gather(std::string_view(host_name()));
  const std::array number{static_cast<double>(::getpid())};
  const auto numbers = ranks.gather(std::span<const double>(number));
  for (int r = 0; r < ranks.size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    if (r == ranks.rank() || places[at] != place) continue;
    const int process = static_cast<int>(numbers[at]);
    peers_.push_back({r, process, text("rank ", r, ", process ", process, " on ", hosts[at])});
  }
  if (peers_.empty()) return;
  thread_ = std::thread([this, own = ranks.rank(), lost = std::move(lost)] { work(own, lost); });
}

void RankWatch::stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void RankWatch::work(int own, const Lost& lost) const {
  while (!stop_) {
    std::string gone;
    bool first = true;
    for (const Peer& peer : peers_) {
      if (!lives(peer.process)) {
        gone += (gone.empty() ? "" : "; ") + peer.name;
      } else if (peer.rank < own) {
        first = false;
      }
    }
    if (!gone.empty()) {
      lost(gone, first);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace longhand::nn
