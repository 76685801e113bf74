#pragma once

#include <memory>

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

/// Normalizes each channel of x, [..., channels], and multiplies it by the gain `weight`, initially
/// 1, and adds `bias`, initially 0 (batch_norm in autograd/norm.h). x has one row of channels for
/// each token, or for each pixel of images [images, height, width, channels].
///
/// In training, the mean and the biased variance are those of the batch, which must have at least
/// two rows. Each batch changes the running moments (running_mean and running_variance):
///   running = running + momentum (moment of the batch - running)
/// with the unbiased variance. In evaluation, the running moments are used instead. The layer is in
/// training if Noise::training() returns true (nn/noise.h).
///
/// Do not use this layer in activations that are recomputed in the backward pass
/// (autograd/recompute.h), because the running moments would count the batch twice. A model that
/// applies this layer to tokens must return false from Model::repeats(). Otherwise, batches may be
/// padded, and the layer would count the padding tokens as rows.
class BatchNorm {
 public:
  BatchNorm() = default;
  BatchNorm(const Scope& scope, std::int64_t channels, double momentum = 0.1,
            double epsilon = 1e-5);

  Var operator()(const Var& x) const;

  Parameter weight, bias;
  Buffer running_mean, running_variance;  // initially 0 and 1
  double momentum = 0.1, epsilon = 1e-5;

 private:
  void propose(const Buffer& running, const Tensor& moment, double factor) const;

  std::shared_ptr<Noise> noise_;
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
