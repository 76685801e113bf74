#pragma once

#include <optional>

#include "autograd/variable.h"
#include "core/formulas.h"
#include "nn/layers/lora.h"

namespace longhand::nn {

/// A linear layer: y = f(x weight^T + bias) + residual. The activation f and the residual are
/// optional. The shapes are weight [out, in] and bias [out].
class Linear {
 public:
  Linear() = default;
  /// By default, initial weights are normally distributed with standard deviation 1/sqrt(in).
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias = true,
         std::optional<Initial> initial = {});

  struct Options {
    std::optional<Activation> f = {};
    Var residual = {};
    std::optional<DType> out = {};  // type of the result; default: the type of x
  };
  Var operator()(const Var& x) const { return (*this)(x, Options{}); }
  Var operator()(const Var& x, const Options& options) const;

  Parameter weight, bias;  // weight may be stored in blocks (Parameter::blocks)
  // Low-rank products (LoRA) that are added to the result; not allowed with an activation.
  std::vector<Lora> adapters = {};

 private:
  Var of_blocks(const Var& x, const Options& options) const;
};

}  // namespace longhand::nn
