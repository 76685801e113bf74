#include "nn/training/prefetcher.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "nn/training/interruption.h"

namespace longhand::nn {

Prefetcher::Prefetcher(BatchSource source, Plan plan) : source_(std::move(source)), plan_(plan) {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    fail("data: cannot start the thread that prepares batches: ", error.code().message());
  }
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::work() {
  try {
    for (std::int64_t step = plan_.first_step; step <= plan_.last_step; ++step) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || ready_.size() < plan_.ahead; });
        if (stop_) return;
      }
      std::vector<Batch> batches;
      for (std::int64_t batch = 0; batch < plan_.batches; ++batch) {
        if (stopped()) return;
        batches.push_back(source_(step, plan_.first_batch + batch));
      }
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(batches));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

bool Prefetcher::stopped() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

std::vector<Batch> Prefetcher::next(const std::function<bool()>& interrupt) {
  std::unique_lock lock(mutex_);
  const auto made = [&] { return error_ || !ready_.empty(); };
  // A signal does not wake this thread. Therefore, `interrupt` is called every 100 ms.
  while (!changed_.wait_for(lock, std::chrono::milliseconds(100), made)) {
    if (interrupt && interrupt()) throw Interrupted();
  }
  if (ready_.empty()) std::rethrow_exception(error_);
  std::vector<Batch> batches = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batches;
}

}  // namespace longhand::nn
