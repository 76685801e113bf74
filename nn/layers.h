#pragma once

#include <optional>

#include "autograd/variable.h"
#include "nn/module.h"

/// The layers every model is made of. Each makes its parameters in a Scope, with the names and the
/// layout of Hugging Face's PyTorch models, and is called like a function.
namespace longhand::nn {

/// y = f(x W^T + b) + residual. weight [out, in], bias [out]
class Linear {
 public:
  Linear() = default;
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias, Initial initial);

  struct Options {
    std::optional<Activation> f = {};
    Var residual = {};
    std::optional<DType> out = {};  // none: x's type
  };
  Var operator()(const Var& x) const { return (*this)(x, Options{}); }
  Var operator()(const Var& x, const Options& options) const;

  Parameter weight, bias;
};

/// weight (gain) ones, bias zeros
class LayerNorm {
 public:
  LayerNorm() = default;
  LayerNorm(const Scope& scope, std::int64_t width, double added_to_variance);

  Var operator()(const Var& x) const;

  Parameter weight, bias;
  double epsilon = 1e-5;
};

/// Rows of a table. weight [vocabulary, width]
class Embedding {
 public:
  Embedding() = default;
  Embedding(const Scope& scope, std::int64_t vocabulary, std::int64_t width, Initial initial);

  Var operator()(const Tensor& ids, DType type) const;

  Parameter weight;
};

/// y = f(x U^T + a) D^T + b + residual
class FeedForward {
 public:
  FeedForward() = default;
  FeedForward(Linear in, Linear out, Activation activation)
      : up(std::move(in)), down(std::move(out)), f(activation) {}

  Var operator()(const Var& x, const Var& residual) const;

  Linear up, down;
  Activation f = Activation::gelu;
};

}  // namespace longhand::nn
