#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/segments.h"
#include "nn/mixer_core/mixing.h"

namespace longhand::nn {

/// The caches of all mixers of all layers. With them, a pass computes only the new tokens. Each
/// sequence has a capacity, its maximum number of tokens.
class KeyValueCache {
 public:
  KeyValueCache(Backend& backend, std::span<const std::int32_t> capacities);
  /// Adds the caches of the next layer's mixers, with rows() rows each.
  void add_layer(std::vector<MixerCache> mixers) { layers_.push_back(std::move(mixers)); }
  std::int64_t rows() const { return rows_; }

  /// Reserves rows for lengths[i] new tokens of each sequence i, which the next pass computes.
  /// Throws an Error if a sequence would exceed its capacity.
  void extend(std::span<const std::int32_t> lengths);

  /// Number of tokens of each sequence, including the new tokens.
  std::span<const std::int32_t> lengths() const { return lengths_; }
  const Segments& keys() const { return keys_; }
  Mixing::Cache layer(std::int64_t index) const {
    return {layers_[static_cast<std::size_t>(index)], keys_};
  }

 private:
  std::vector<std::int32_t> begins_, capacities_, lengths_;
  std::int64_t rows_ = 0;
  std::vector<std::vector<MixerCache>> layers_;
  Segments keys_;
};

}  // namespace longhand::nn
