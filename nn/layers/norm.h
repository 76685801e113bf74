#pragma once

#include "autograd/variable.h"
#include "nn/module.h"
#include "nn/options.h"

namespace longhand::nn {

/// LayerNorm (core/contract/norm.h) with two trained vectors: the gain `weight`, initially 1, and
/// `bias`, initially 0.
class LayerNorm {
 public:
  LayerNorm() = default;
  LayerNorm(const Scope& scope, std::int64_t width, double added_to_variance);

  Var operator()(const Var& x) const;

  Parameter weight, bias;
  double epsilon = 1e-5;
};

/// Multiplies x / rms(x) by a gain, where rms is the root mean square of a row. The gain is
/// `weight` (initially 1), or 1 + `weight` (`weight` is initially 0), or a constant.
class RmsNorm {
 public:
  RmsNorm() = default;
  RmsNorm(const Scope& scope, std::int64_t width, double added_to_square, bool plus_one);
  RmsNorm(const Tensor& ones, double added_to_square) : fixed(ones), epsilon(added_to_square) {}

  Var operator()(const Var& x) const;

  Parameter weight;
  Var fixed = {};  // the constant gain; empty if the gain is trained
  double epsilon = 1e-6;
  bool plus_one = false;
};

enum class NormKind {
  layer,
  rms,
  rms_plus_one,  // an RmsNorm with the gain 1 + weight
};
template <>
inline constexpr std::array<std::string_view, 3> names_of<NormKind>{"layer", "rms", "rms_plus_one"};

/// A LayerNorm or RmsNorm, as selected by a model's configuration.
class Norm {
 public:
  Norm() = default;
  Norm(const Scope& scope, std::int64_t width, NormKind kind, double epsilon);

  Var operator()(const Var& x) const;
  /// The trained gain and bias. An RmsNorm has an empty bias.
  const Parameter& weight() const { return layer_.weight ? layer_.weight : rms_.weight; }
  const Parameter& bias() const { return layer_.bias; }
  explicit operator bool() const { return layer_.weight || rms_.weight; }

 private:
  LayerNorm layer_;
  RmsNorm rms_;
};

}  // namespace longhand::nn
