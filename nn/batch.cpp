#include "nn/batch.h"

#include <utility>

#include "core/error.h"

namespace longhand::nn {

double Batch::total_weight() const {
  double sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] >= 0) sum += weights.empty() ? 1.0 : static_cast<double>(weights[i]);
  }
  return sum;
}

Prefetcher::Prefetcher(BatchSource source, Plan plan)
    : source_(std::move(source)), plan_(plan), thread_([this] { work(); }) {}

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
      std::vector<Batch> parts;
      for (std::int64_t part = 0; part < plan_.parts; ++part) {
        parts.push_back(source_(step, plan_.first_part + part));
      }
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(parts));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

std::vector<Batch> Prefetcher::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || !ready_.empty(); });
  if (ready_.empty()) std::rethrow_exception(error_);
  std::vector<Batch> parts = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return parts;
}

}  // namespace longhand::nn
