#pragma once

#include <string>
#include <vector>

#include "nn/module.h"
#include "nn/options.h"

namespace longhand::nn {

/// Options of LoRA. Low-rank products are added to the matrices of a model. The products are
/// trained, and the matrices are not.
struct LoraOptions {
  std::int64_t rank = 0;  // rank of the low-rank products; 0: none
  double alpha = 0;       // products are scaled by alpha / rank; 0: alpha = rank
  /// Names of the projections that get a low-rank product.
  std::vector<std::string> targets = {};

  void declare(Options& options);
  double scale() const { return alpha == 0 ? 1 : alpha / static_cast<double>(rank); }
  bool has(std::string_view target) const;
};
/// The names of all projections that can have low-rank products: query, key, value and output of
/// the mixing, and gate, up and down of the feed forward.
std::span<const std::string_view> lora_targets();
/// Parses a list such as "query,value". Throws an Error for an unknown name.
std::vector<std::string> parse_lora_targets(std::string_view list);

/// One named projection, such as the queries: the columns first .. first + count - 1 of the output
/// of a linear layer.
struct Projected {
  std::string_view name;  // a name in lora_targets()
  std::int64_t first = 0, count = 0;
};

/// Adds the low-rank product scale (x a^T) b^T to the projection's columns of y, the output of a
/// linear layer with the input x. a and b are trained. b is initially 0, so y is initially
/// unchanged.
class Lora {
 public:
  Lora(const Scope& scope, std::int64_t in, const Projected& projected, const LoraOptions& options);

  /// Adds the low-rank product scale (x a^T) b^T to y in place and returns y (autograd/low_rank.h).
  Var operator()(const Var& y, const Var& x) const;
  /// Adds the matrix scale * b * a to those rows of `weight` that compute the projection.
  void merge_into(const Parameter& weight) const;

  Projected projected;
  double scale = 1;
  Parameter a, b;
};

}  // namespace longhand::nn
