#include "nn/training/gradient_exchange.h"

#include <algorithm>
#include <utility>

#include "core/contract/elementwise.h"
#include "core/error.h"
#include "nn/training/gradient_tree.h"

namespace longhand::nn {

GradientExchange::GradientExchange(Communicator& ranks, const Parameters& parameters,
                                   std::vector<int> owners, std::size_t bytes)
    : ranks_(ranks), parameters_(parameters), owners_(std::move(owners)) {
  const auto all = parameters_.all();
  places_.resize(all.size());
  here_.resize(all.size());
  reached_.resize(all.size());
  own_.resize(all.size());
  Bucket open;
  std::size_t size = 0;
  for (std::size_t i = all.size(); i-- > 0;) {
    if (all[i].frozen()) continue;
    open.members.push_back(i);
    size += all[i].value().bytes();
    if (size < bytes) continue;
    close(std::exchange(open, {}));
    size = 0;
  }
  if (!open.members.empty()) close(std::move(open));
}

void GradientExchange::close(Bucket bucket) {
  const auto share = [&](std::size_t i) {
    return static_cast<std::size_t>(ranks_.share_of(owners_[i]));
  };
  if (!owners_.empty()) {
    std::ranges::stable_sort(bucket.members, {}, share);
    bucket.shares.resize(static_cast<std::size_t>(ranks_.size()) + 1);
  }
  std::int64_t at = 0;
  for (std::size_t member = 0; member < bucket.members.size(); ++member) {
    const std::size_t i = bucket.members[member];
    places_[i] = {buckets_.size(), member};
    bucket.at.push_back(at);
    at += parameters_.all()[i].shape().size();
    const std::int64_t gap = -at & 3;  // each f32 member begins at a multiple of 16 bytes
    if (gap > 0) bucket.gaps = true;
    at += gap;
    // Members are sorted by share. Set the start of every later share to `at`, the end of this
    // member. If further members come before a later share, their iterations overwrite its start.
    if (!owners_.empty()) {
      for (std::size_t s = share(i) + 1; s < bucket.shares.size(); ++s) {
        bucket.shares[s] = static_cast<std::size_t>(at);
      }
    }
  }
  bucket.at.push_back(at);
  bucket.missing = bucket.members.size();
  buckets_.push_back(std::move(bucket));
}

Tensor GradientExchange::in(const Bucket& bucket, std::size_t member) const {
  const Shape& shape = parameters_.all()[bucket.members[member]].shape();
  return bucket.flat.slice(bucket.at[member], shape.size()).reshape(shape);
}

void GradientExchange::add(std::size_t parameter, const Tensor& gradient) {
  if (parameters_.all()[parameter].frozen()) return;
  if (!std::exchange(adding_, true)) {
    seconds_before_ = ranks_.seconds_in_sums();
    waited_ = 0;
  }
  const auto [at, member] = places_[parameter];
  Bucket& bucket = buckets_[at];
  Backend& backend = parameters_.backend();
  if (!bucket.flat) {
    bucket.flat = Tensor(backend, {bucket.at.back()}, parameters_.type());
    if (bucket.gaps) backend(Fill{.value = 0, .y = bucket.flat});
  }
  here_[parameter] = gradient ? 1 : 0;
  const Tensor to = in(bucket, member);
  if (gradient) {
    backend(Copy{.x = gradient, .y = to});
  } else {  // without a gradient, add -0: x + -0 = x for every sum x, but -0 + 0 = 0
    backend(Fill{.value = -0.0, .y = to});
  }
  --bucket.missing;
  begin_ready();
}

void GradientExchange::begin_ready() {
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
    Bucket& bucket = buckets_[next_];
    bucket.ticket = ranks_.begin_sum(bucket.flat, bucket.shares);
  }
  if (owners_.empty()) return;
  // If backward is faster than the exchange, waits until an earlier bucket is exchanged. This
  // limits the number of buckets in memory.
  if (next_ > kept_ + most_under_way) {
    const auto start = Clock::now();
    ranks_.finish(buckets_[next_ - most_under_way - 1].ticket);
    waited_ += std::chrono::duration<double>(Clock::now() - start).count();
  }
  for (; kept_ < next_ && buckets_[kept_].ticket <= ranks_.sums_done(); ++kept_) {
    keep_own(buckets_[kept_]);
  }
}

/// Frees a bucket, but keeps the sums of this rank's own parameters.
void GradientExchange::keep_own(Bucket& bucket) {
  for (std::size_t member = 0; member < bucket.members.size(); ++member) {
    const std::size_t i = bucket.members[member];
    if (owners_[i] != ranks_.rank()) continue;
    const Tensor sum = in(bucket, member);
    own_[i] = empty_like(sum);
    sum.backend()(Copy{.x = sum, .y = own_[i]});
  }
  bucket.flat = Tensor();
}

Tensor GradientExchange::finish(const Tensor& losses) {
  const auto start = Clock::now();
  LONGHAND_CHECK(next_ == buckets_.size(), "ranks: expected the gradients of all ", buckets_.size(),
                 " buckets of parameters, got only the first ", next_, " buckets");
  Backend& backend = parameters_.backend();
  const DType type = parameters_.type();
  const auto count = std::ssize(here_);
  // Also sums the losses, and for each parameter a number that is 1 if this rank has a gradient of
  // this parameter.
  const Tensor rest = Tensor(backend, {count + 1}, type);
  const Tensor anywhere = rest.slice(0, count), loss = rest.slice(count, 1);
  anywhere.assign(here_);
  backend(Copy{.x = sum_of(parameters_, losses), .y = loss});
  ranks_.begin_sum(rest);
  ranks_.finish();
  exposed_ = waited_ + std::chrono::duration<double>(Clock::now() - start).count();
  seconds_ = ranks_.seconds_in_sums() - seconds_before_;
  const std::vector<double> reached = anywhere.to_doubles();
  for (std::size_t i = 0; i < reached.size(); ++i) reached_[i] = reached[i] != 0;
  for (; kept_ < next_ && !owners_.empty(); ++kept_) keep_own(buckets_[kept_]);
  for (Bucket& bucket : buckets_) {
    for (std::size_t member = 0; member < bucket.members.size(); ++member) {
      const std::size_t i = bucket.members[member];
      const Tensor sum = bucket.flat ? in(bucket, member) : std::exchange(own_[i], {});
      if (sum && reached_[i]) parameters_.all()[i].var().sink().add(sum);
    }
    bucket.flat = Tensor();
    bucket.missing = bucket.members.size();
  }
  next_ = kept_ = 0;
  adding_ = false;
  return loss;
}

}  // namespace longhand::nn
