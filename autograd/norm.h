#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/norm.h, which normalize the last axis.
namespace longhand {

Var layer_norm(const Var& x, const Var& gain, const Var& bias, double epsilon = 1e-5);
Var rms_norm(const Var& x, const Var& gain, double offset = 0, double epsilon = 1e-6);

/// The mean and the biased variance of each column of x. Both tensors have the shape [columns] and
/// the master type.
struct ColumnMoments {
  Var mean, variance;
};
ColumnMoments column_moments(const Var& x);

/// y_ij = (x_ij - mean_j) rstd_j gain_j + bias_j with rstd_j = 1 / sqrt(variance_j + epsilon),
/// composed of elementwise operations. If the moments are those of x, the gradient also flows
/// through them.
Var batch_norm(const Var& x, const ColumnMoments& moments, const Var& gain, const Var& bias,
               double epsilon = 1e-5);

}  // namespace longhand
