#include "nn/ranks/threads.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace longhand::nn {
namespace {

/// The messages that a rank has sent and another rank has not yet received.
class Mail {
 public:
  explicit Mail(int ranks) : gone_(static_cast<std::size_t>(ranks)) {}

  void send(int from, int to, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    on_its_way_[{from, to}].emplace_back(bytes.begin(), bytes.end());
    changed_.notify_all();
  }
  void receive(int from, int to, std::span<std::byte> bytes) {
    std::unique_lock lock(mutex_);
    std::vector<std::vector<std::byte>>& waiting = on_its_way_[{from, to}];
    const auto sender = static_cast<std::size_t>(from);
    changed_.wait(lock, [&] { return !waiting.empty() || gone_[sender]; });
    if (waiting.empty()) throw RankLost(text("rank ", from, " has ended"));
    const std::vector<std::byte> message = std::move(waiting.front());
    waiting.erase(waiting.begin());
    LONGHAND_CHECK(message.size() == bytes.size(), "rank ", to, ": expected ", bytes.size(),
                   " bytes from rank ", from, ", got ", message.size());
    std::ranges::copy(message, bytes.begin());
  }
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    gone_[static_cast<std::size_t>(rank)] = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::vector<std::vector<std::byte>>> on_its_way_;
  std::vector<bool> gone_;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(Mail& mail, int rank, int size) : mail_(mail), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive) override {
    mail_.send(rank_, peer, send);
    mail_.receive(peer, rank_, receive);
  }

 private:
  Mail& mail_;
  int rank_, size_;
};

}  // namespace

void run_ranks(int size, const std::function<void(Communicator&)>& rank) {
  Mail mail(size);
  std::vector<std::exception_ptr> own(static_cast<std::size_t>(size)), lost = own;
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      const auto at = static_cast<std::size_t>(r);
      try {
        Communicator ranks(std::make_unique<ThreadTransport>(mail, r, size));
        rank(ranks);
      } catch (const RankLost&) {
        lost[at] = std::current_exception();
      } catch (const FailedElsewhere&) {
        lost[at] = std::current_exception();
      } catch (...) {
        own[at] = std::current_exception();
      }
      mail.leave(r);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto* errors : {&own, &lost}) {
    for (const std::exception_ptr& error : *errors) {
      if (error) std::rethrow_exception(error);
    }
  }
}

}  // namespace longhand::nn
