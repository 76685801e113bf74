#pragma once

#include <optional>

#include "autograd/variable.h"
#include "nn/layers/lora.h"

namespace longhand::nn {

/// y = f(x W^T + b) + residual. weight [out, in], bias [out]
class Linear {
 public:
  Linear() = default;
  /// Weights at first: normal numbers of deviation 1/sqrt(in), unless said otherwise.
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias = true,
         std::optional<Initial> initial = {});

  struct Options {
    std::optional<Activation> f = {};
    Var residual = {};
    std::optional<DType> out = {};  // none: x's type
  };
  Var operator()(const Var& x) const { return (*this)(x, Options{}); }
  Var operator()(const Var& x, const Options& options) const;

  Parameter weight, bias;
  std::vector<Lora> adapters = {};  // added to the product; without an activation only
};

}  // namespace longhand::nn
