#include "nn/cache.h"

#include "core/backend.h"
#include "core/error.h"

namespace longhand::nn {

KeyValueCache::KeyValueCache(Backend& backend, DType type, std::vector<HeadList> layers,
                             std::span<const std::int32_t> capacities)
    : backend_(backend.shared_from_this()),
      capacities_(capacities.begin(), capacities.end()),
      lengths_(capacities.size(), 0) {
  std::int64_t rows = 0;
  for (const std::int32_t capacity : capacities_) {
    LONGHAND_CHECK(capacity >= 0 && rows + capacity <= INT32_MAX,
                   "cache: expected room for at most ", INT32_MAX, " tokens in all");
    begins_.push_back(static_cast<std::int32_t>(rows));
    rows += capacity;
  }
  for (HeadList& heads : layers) {
    Layer layer{std::move(heads), {}};
    layer.data = Tensor(backend, {rows, 2 * columns(layer.heads)}, type);
    if (const std::int64_t chained = chacal_columns(layer.heads)) {
      layer.outputs = Tensor(backend, {rows, chained}, type);
    }
    layers_.push_back(std::move(layer));
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
  keys_ = Segments(*backend_, begins_, lengths_);
}

CachedHeads KeyValueCache::layer(std::int64_t index) const {
  const Layer& layer = layers_[static_cast<std::size_t>(index)];
  return {layer.data, keys_, layer.outputs};
}

void KeyValueCache::store(std::int64_t layer, const Tensor& projection, const Segments& queries) {
  const auto& [list, cached, outputs] = layers_[static_cast<std::size_t>(layer)];
  for (const HeadPlace& place : places(list)) {
    const auto [kind, heads, width] = place.group;
    cached.backend()(
        Append{.x = {projection, place.projection + place.group.columns(), 2 * heads, width},
               .from = queries,
               .y = {cached, 2 * place.output, 2 * heads, width},
               .to = keys_});
  }
}

}  // namespace longhand::nn
