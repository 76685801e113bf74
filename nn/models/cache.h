#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/segments.h"
#include "nn/mixing/mixing.h"

namespace longhand::nn {

/// What every layer's mixers keep of the tokens that a model has read, so that a new token costs
/// one row. Each sequence has room for its capacity of tokens.
class KeyValueCache {
 public:
  KeyValueCache(Backend& backend, std::span<const std::int32_t> capacities);
  /// The caches of the next layer's mixers, of rows() each.
  void add_layer(std::vector<MixerCache> mixers) { layers_.push_back(std::move(mixers)); }
  std::int64_t rows() const { return rows_; }

  /// Makes room for so many new tokens of each sequence: the queries of the coming pass. An Error
  /// when one outgrows its capacity.
  void extend(std::span<const std::int32_t> lengths);

  /// How many tokens of each sequence there are, the newest included.
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
