#pragma once

#include <optional>

#include "autograd/variable.h"
#include "nn/module.h"

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

}  // namespace longhand::nn
