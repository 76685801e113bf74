#include "core/cpu/attention/work.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace longhand::cpu {
namespace {

/// Minimum cost of a chunk, in multiplications. A chunk is the work that is passed to a thread at
/// once. A chunk of this cost takes some tens of microseconds, much longer than passing it to the
/// thread.
constexpr double chunk_cost = 2e6;

}  // namespace

void WorkList::add(const WorkItem& item, double cost) {
  if (open_ > 0 && open_ + cost > chunk_cost) close();
  items.push_back(item);
  open_ += cost;
  if (open_ >= chunk_cost) close();
}

void WorkList::close() {
  if (items.size() > starts.back()) starts.push_back(items.size());
  open_ = 0;
}

void WorkList::run(ThreadPool& threads, FunctionRef<void(const WorkItem&, int worker)> body) const {
  threads.run(static_cast<std::int64_t>(starts.size()) - 1, [&](std::int64_t chunk, int worker) {
    for (std::size_t i = starts[chunk]; i < starts[chunk + 1]; ++i) body(items[i], worker);
  });
}

std::int64_t heads_together(double cost_of_head, std::int64_t heads) {
  const double wanted = std::ceil(chunk_cost / std::max(1.0, cost_of_head));
  return static_cast<std::int64_t>(std::clamp(wanted, 1.0, static_cast<double>(heads)));
}

SegmentRows segment_rows(const Segments& queries, const Segments& keys, std::int64_t segment) {
  return {queries.begins()[segment], queries.lengths()[segment], keys.begins()[segment],
          keys.lengths()[segment]};
}

Tensor floats(Backend& backend, std::int64_t count) {
  return Tensor(backend, Shape{std::max<std::int64_t>(1, count)}, DType::f32);
}

Scratch::Scratch(Backend& backend, int threads, std::int64_t count)
    : memory_(floats(backend, threads * ((count + 15) / 16 + 1) * 16)),
      stride_(((count + 15) / 16 + 1) * 16),
      base_(memory_.data<float>()) {}

std::int64_t window_of(const Scores& scores) {
  return scores.window > 0 ? scores.window : std::int64_t{1} << 40;
}

void Progress::wait(std::size_t item, std::int64_t value) const {
  for (int spin = 0; done_[item].load(std::memory_order_acquire) < value; ++spin) {
    if (spin > 1000) std::this_thread::yield();
  }
}

}  // namespace longhand::cpu
