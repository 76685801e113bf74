#pragma once

#include <string>
#include <vector>

#include "nn/module.h"
#include "nn/options.h"

namespace longhand::nn {

/// Options of LoRA. Low-rank products are added to the matrices of a model. The products are
/// trained, and the matrices are not.
struct LoraOptions {
  std::int64_t rank = 0;                  // 0: no low-rank products
  double alpha = 0;                       // products are scaled by alpha / rank; 0: alpha = rank
  std::vector<std::string> targets = {};  // names from lora_targets()

  void declare(Options& options);
  double scale() const { return alpha == 0 ? 1 : alpha / static_cast<double>(rank); }
  bool has(std::string_view target) const;
};
/// The names of all projections that can have low-rank products: query, key, value and output of
/// the mixing, and gate, up and down of the feed forward.
std::span<const std::string_view> lora_targets();
/// Parses a list such as "query,value". Throws an Error for an unknown name.
std::vector<std::string> parse_lora_targets(std::string_view list);

/// The columns first .. first + count - 1 of a layer's output, which contain one named projection.
struct Projected {
  std::string_view name;  // a name in lora_targets()
  std::int64_t first = 0, count = 0;
};

/// Adds scale (x a^T) b^T to the projection's columns of y. Initially b is 0, so y does not change.
class Lora {
 public:
  Lora(const Scope& scope, std::int64_t in, const Projected& projected, const LoraOptions& options);

  /// Overwrites y with the result (autograd/low_rank.h).
  Var operator()(const Var& y, const Var& x) const;
  /// Adds scale b a to the projection's rows of `weight`.
  void merge_into(const Parameter& weight) const;

  Projected projected;
  double scale = 1;
  Parameter a, b;
};

}  // namespace longhand::nn
