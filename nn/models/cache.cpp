#include "nn/models/cache.h"

#include "core/error.h"

namespace longhand::nn {

KeyValueCache::KeyValueCache(Backend& backend, std::span<const std::int32_t> capacities)
    : capacities_(capacities.begin(), capacities.end()), lengths_(capacities.size(), 0) {
  for (const std::int32_t capacity : capacities_) {
    LONGHAND_CHECK(capacity >= 0 && rows_ + capacity <= INT32_MAX, "cache: expected at most ",
                   INT32_MAX, " tokens in total");
    begins_.push_back(static_cast<std::int32_t>(rows_));
    rows_ += capacity;
  }
  keys_ = Segments(backend, begins_, lengths_);
}

void KeyValueCache::extend(std::span<const std::int32_t> lengths) {
  LONGHAND_CHECK(lengths.size() == lengths_.size(), "cache: expected ", lengths_.size(),
                 " sequences, got ", lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    LONGHAND_CHECK(lengths_[i] + lengths[i] <= capacities_[i], "cache: sequence ", i,
                   ": expected at most ", capacities_[i], " tokens, got ",
                   lengths_[i] + lengths[i]);
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths_[i] += lengths[i];
  keys_.assign_lengths(lengths_);
}

}  // namespace longhand::nn
