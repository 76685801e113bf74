#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// Sums over a range of predictions: `weight` sums the weights, `loss` the weighted losses, and
/// `hits` the weights of correct predictions. The sums of different ranges are added in the order
/// of the ranges.
struct LossSums {
  double weight = 0, loss = 0, hits = 0;
};

/// Kernels for `count` consecutive predictions with `classes` logits each. `weights` may be null.
template <class T>
struct LossKernels {
  LossSums (*cross_entropy)(const T* logits, const std::int32_t* targets, const float* weights,
                            float* log_sum, std::int64_t count, std::int64_t classes);
  /// `factor` is dloss, the gradient of the loss, divided by the total weight of all predictions.
  void (*cross_entropy_backward)(const T* logits, const std::int32_t* targets, const float* weights,
                                 const float* log_sum, double factor, T* dlogits, Store how,
                                 std::int64_t count, std::int64_t classes);
  LossSums (*binary)(const T* logits, const float* targets, const float* weights,
                     std::int64_t count);
  void (*binary_backward)(const T* logits, const float* targets, const float* weights,
                          double factor, T* dlogits, Store how, std::int64_t count);
};

}  // namespace longhand::cpu
