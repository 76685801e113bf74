#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/segments.h"
#include "nn/heads.h"

namespace longhand::nn {

/// Keys and values of the tokens that a model has read, for every layer and sequence, so that a new
/// token costs one row. Each sequence has room for its capacity of tokens.
class KeyValueCache {
 public:
  /// `layers`: the heads of each.
  KeyValueCache(Backend& backend, DType type, std::vector<HeadList> layers,
                std::span<const std::int32_t> capacities);

  /// Makes room for so many new tokens of each sequence: the queries of the coming pass. An Error
  /// when one outgrows its capacity.
  void extend(std::span<const std::int32_t> lengths);

  /// How many tokens of each sequence there are, the newest included.
  std::span<const std::int32_t> lengths() const { return lengths_; }
  const Segments& keys() const { return keys_; }

  /// Stores the new tokens' keys and values of a layer out of its projection [tokens, 3 columns].
  void store(std::int64_t layer, const Tensor& projection, const Segments& queries);
  /// What mixed_attention reads of a layer, and where it puts ChaCAL's new outputs.
  CachedHeads layer(std::int64_t index) const;

 private:
  struct Layer {
    HeadList heads;
    Tensor data;          // [rows, 2 columns]: for each group of heads in turn [k | v]
    Tensor outputs = {};  // of ChaCAL heads, [rows, their columns]; empty without such heads
  };
  std::shared_ptr<Backend> backend_;
  std::vector<std::int32_t> begins_, capacities_, lengths_;
  std::vector<Layer> layers_;
  Segments keys_;
};

}  // namespace longhand::nn
