#pragma once

#include <string>
#include <vector>

#include "nn/module.h"

namespace longhand::nn {

/// What is added to the products of a model's blocks, and learns in their place.
struct LoraOptions {
  std::int64_t rank = 0;                  // 0: nothing
  double alpha = 0;                       // 0: as the rank
  std::vector<std::string> targets = {};  // of the projections below

  double scale() const { return alpha == 0 ? 1 : alpha / static_cast<double>(rank); }
  bool has(std::string_view target) const;
};
/// query, key, value and output of the mixing; gate, up and down of the feed forward.
std::span<const std::string_view> lora_targets();
/// "query,value" as targets; an Error for another name.
std::vector<std::string> parse_lora_targets(std::string_view list);

/// Columns of a layer's output that are a projection of their own.
struct Projected {
  std::string_view name;  // one of lora_targets()
  std::int64_t first = 0, count = 0;
};

/// y + scale (x a^T) b^T in the projection's columns. b is 0 at first, so y stays as it is.
class Lora {
 public:
  Lora(const Scope& scope, std::int64_t in, const Projected& projected, const LoraOptions& options);

  /// In y's memory (autograd/low_rank.h).
  Var operator()(const Var& y, const Var& x) const;
  /// weight += scale b a, in the projection's rows.
  void merge_into(const Parameter& weight) const;

  Projected projected;
  double scale = 1;
  Parameter a, b;
};

}  // namespace longhand::nn
