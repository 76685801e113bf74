#pragma once

#include "autograd/variable.h"
#include "nn/module.h"
#include "nn/options.h"

namespace longhand::nn {

/// weight (gain) ones, bias zeros. core/contract/norm.h has the formula.
class LayerNorm {
 public:
  LayerNorm() = default;
  LayerNorm(const Scope& scope, std::int64_t width, double added_to_variance);

  Var operator()(const Var& x) const;

  Parameter weight, bias;
  double epsilon = 1e-5;
};

/// x / rms(x) times its gain: weight (ones), or 1 + weight (zeros), or ones that are not learned.
class RmsNorm {
 public:
  RmsNorm() = default;
  RmsNorm(const Scope& scope, std::int64_t width, double added_to_square, bool plus_one);
  RmsNorm(const Tensor& ones, double added_to_square) : fixed(ones), epsilon(added_to_square) {}

  Var operator()(const Var& x) const;

  Parameter weight;
  Var fixed = {};  // the gain where it is not learned
  double epsilon = 1e-6;
  bool plus_one = false;
};

enum class NormKind {
  layer,
  rms,
  rms_plus_one,  // its weight is the gain's distance from one
};
template <>
inline constexpr std::array<std::string_view, 3> names_of<NormKind>{"layer", "rms", "rms_plus_one"};

/// One of them, as a model's configuration says.
class Norm {
 public:
  Norm() = default;
  Norm(const Scope& scope, std::int64_t width, NormKind kind, double epsilon);

  Var operator()(const Var& x) const;
  /// The gain's parameter, and LayerNorm's bias; empty in an RmsNorm.
  const Parameter& weight() const { return layer_.weight ? layer_.weight : rms_.weight; }
  const Parameter& bias() const { return layer_.bias; }
  explicit operator bool() const { return layer_.weight || rms_.weight; }

 private:
  LayerNorm layer_;
  RmsNorm rms_;
};

}  // namespace longhand::nn
