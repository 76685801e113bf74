#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

/// Normalization of rows x_i of n entries. x, y, dy and dx share one type. gain, bias, mean and
/// rstd are f64 if x is f64, otherwise f32.
namespace longhand {

/// mean_i = 1/n sum_j x_ij;  rstd_i = 1 / sqrt(1/n sum_j (x_ij - mean_i)^2 + epsilon);
/// y_ij = (x_ij - mean_i) rstd_i gain_j + bias_j, where n is the length of a row.
/// Saves mean and rstd, [rows]. bias may be empty.
struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  Tensor x, gain, bias;
  double epsilon = 1e-5;
  Tensor y, mean, rstd;
};

/// The gradients of LayerNorm for rows of n entries. With h_ij = (x_ij - mean_i) rstd_i and
/// g_ij = dy_ij gain_j,
///   dx_ij = rstd_i (g_ij - 1/n sum_k g_ik - h_ij 1/n sum_k g_ik h_ik);
///   dgain_j = sum_i dy_ij h_ij;  dbias_j = sum_i dy_ij
struct LayerNormBackward {
  static constexpr std::string_view name = "layer_norm_backward";
  Tensor x, gain, mean, rstd, dy;
  Target dx, dgain, dbias;
};

/// rstd_i = 1 / sqrt(1/n sum_j x_ij^2 + epsilon);  y_ij = x_ij rstd_i (offset + gain_j), where n is
/// the length of a row. offset is 1 if the tensor `gain` stores the gain minus 1, otherwise 0.
/// Saves rstd [rows].
struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  Tensor x, gain;
  double offset = 0, epsilon = 1e-6;
  Tensor y, rstd;
};

/// The gradients of RmsNorm for rows of n entries, where h_ij = x_ij rstd_i and
/// g_ij = dy_ij (offset + gain_j):
///   dx_ij = rstd_i (g_ij - h_ij 1/n sum_k g_ik h_ik);  dgain_j = sum_i dy_ij h_ij
struct RmsNormBackward {
  static constexpr std::string_view name = "rms_norm_backward";
  Tensor x, gain, rstd, dy;
  double offset = 0;
  Target dx, dgain;
};

void check(const LayerNorm& op);
void check(const LayerNormBackward& op);
void check(const RmsNorm& op);
void check(const RmsNormBackward& op);

}  // namespace longhand
