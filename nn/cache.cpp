#include "nn/cache.h"

#include "core/backend.h"
#include "core/error.h"

namespace longhand::nn {

KeyValueCache::KeyValueCache(Backend& backend, DType type, HeadList heads, std::int64_t layers,
                             std::span<const std::int32_t> capacities)
    : heads_(std::move(heads)),
      capacities_(capacities.begin(), capacities.end()),
      lengths_(capacities.size(), 0) {
  std::int64_t rows = 0;
  for (const std::int32_t capacity : capacities_) {
    LONGHAND_CHECK(capacity >= 0 && rows + capacity <= INT32_MAX,
                   "cache: expected room for at most ", INT32_MAX, " tokens in all");
    begins_.push_back(static_cast<std::int32_t>(rows));
    rows += capacity;
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    layers_.emplace_back(backend, Shape{rows, 2 * columns(heads_)}, type);
    if (const std::int64_t chained = chacal_columns(heads_)) {
      outputs_.emplace_back(backend, Shape{rows, chained}, type);
    }
  }
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
  keys_ = Segments(layers_.front().backend(), begins_, lengths_);
}

CachedHeads KeyValueCache::layer(std::int64_t index) const {
  const auto at = static_cast<std::size_t>(index);
  return {layers_[at], keys_, outputs_.empty() ? Tensor() : outputs_[at]};
}

void KeyValueCache::store(std::int64_t layer, const Tensor& projection, const Segments& queries) {
  const Tensor& cached = layers_[static_cast<std::size_t>(layer)];
  for (const HeadPlace& place : places(heads_)) {
    const auto [kind, heads, width] = place.group;
    cached.backend()(
        Append{.x = {projection, place.projection + place.group.columns(), 2 * heads, width},
               .from = queries,
               .y = {cached, 2 * place.output, 2 * heads, width},
               .to = keys_});
  }
}

}  // namespace longhand::nn
