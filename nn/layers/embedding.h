#pragma once

#include "autograd/variable.h"
#include "nn/module.h"

namespace longhand::nn {

/// Selects the rows of `weight` [vocabulary, width] with the given ids and multiplies them by
/// `scale`.
class Embedding {
 public:
  Embedding() = default;
  Embedding(const Scope& scope, std::int64_t vocabulary, std::int64_t width,
            Initial initial = normal(1), double times = 1);

  Var operator()(const Tensor& ids) const { return (*this)(ids, weight.value().dtype()); }
  Var operator()(const Tensor& ids, DType type) const;

  Parameter weight;
  double scale = 1;
};

}  // namespace longhand::nn
