#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

/// Each loss is the weighted mean of one loss per target. The loss is a tensor [1]. The loss and
/// the weights are f64 if the logits are f64, otherwise f32. If `weights` is empty, all weights are
/// 1. If all weights are 0, the loss and its gradient are 0.
namespace longhand {

/// Cross entropy. logits has the shape [rows, groups * classes]: each row contains `groups`
/// independent choices among `classes` classes. targets and weights have the shape [rows, groups].
/// The target t of row i and group g is a class, and w_ig is its weight. A negative target is not
/// counted (w_ig = 0). A target >= classes is an Error on host backends and gives a loss of NaN on
/// a device.
///   log_sum_ig = log sum_c exp logits_igc;
///   total = sum w_ig;  loss = 1/total sum w_ig (log_sum_ig - logits_ig,t);
///   hits = 1/total sum w_ig hit_ig.
/// hit_ig is 1 if t is the class with the largest logit of the group (the first such class if
/// several logits are equal), otherwise 0. Saves log_sum [rows, groups] and total [1]. hits [1] may
/// be empty.
struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  Tensor logits, targets, weights = {};
  std::int64_t groups = 1;
  Tensor loss, hits = {}, log_sum, total;
};

/// The gradient of CrossEntropy. For row i, group g and class c,
///   dlogits_igc = dloss w_ig / total (exp(logits_igc - log_sum_ig) - one_igc),
/// where one_igc is 1 if c is the target, otherwise 0, w_ig is the weight of the target, and total
/// is the sum of all weights. dlogits may share the memory of logits.
struct CrossEntropyBackward {
  static constexpr std::string_view name = "cross_entropy_backward";
  Tensor logits, targets, weights = {};
  std::int64_t groups = 1;
  Tensor log_sum, total, dloss;
  Target dlogits;
};

/// Binary cross entropy. Each logit x_i has a weight w_i and a target t_i in [0, 1]. The weights
/// and targets have the same type as the loss.
///   total = sum w_i;  loss = 1/total sum w_i (max(x_i, 0) - x_i t_i + log(1 + exp(-|x_i|))).
/// Saves total.
struct BinaryCrossEntropy {
  static constexpr std::string_view name = "binary_cross_entropy";
  Tensor logits, targets, weights = {};
  Tensor loss, total;
};

/// dlogits_i = dloss w_i / total (sigmoid(x_i) - t_i), where x_i are the logits, t_i the targets,
/// w_i the weights and total their sum.
struct BinaryCrossEntropyBackward {
  static constexpr std::string_view name = "binary_cross_entropy_backward";
  Tensor logits, targets, weights = {}, total, dloss;
  Target dlogits;
};

void check(const CrossEntropy& op);
void check(const CrossEntropyBackward& op);
void check(const BinaryCrossEntropy& op);
void check(const BinaryCrossEntropyBackward& op);

}  // namespace longhand
