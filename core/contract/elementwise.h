#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/formulas.h"
#include "core/tensor.h"

/// Elementwise operations. An output may share the memory of an input of the same shape and type.
namespace longhand {

/// y_i = value
struct Fill {
  static constexpr std::string_view name = "fill";
  double value = 0;
  Tensor y;
};

/// y_i = x_i, converted to y's type. Conversion to bf16 rounds to the nearest number, ties to even.
struct Copy {
  static constexpr std::string_view name = "copy";
  Tensor x, y;
};

/// y_i = alpha x_i
struct Scale {
  static constexpr std::string_view name = "scale";
  Tensor x;
  double alpha = 1;
  Target y;
};

/// y_i = f(x_i), where f is an activation function.
struct Activate {
  static constexpr std::string_view name = "activate";
  Activation f{};
  Tensor x, y;
};

/// The gradient of y_i = f(x_i): dx_i = dy_i f'(x_i).
struct ActivateBackward {
  static constexpr std::string_view name = "activate_backward";
  Activation f{};
  Tensor x, dy;
  Target dx;
};

/// y_ij = f(x_ij) x_i,(w+j). x is [rows, 2w], and y is [rows, w]. In each row of x, the activation
/// f of the first half multiplies the second half.
struct Gate {
  static constexpr std::string_view name = "gate";
  Activation f{};
  Tensor x, y;
};

/// The gradient of Gate, where w is half the number of columns of x:
///   dx_ij = dy_ij f'(x_ij) x_i,(w+j);  dx_i,(w+j) = dy_ij f(x_ij)
struct GateBackward {
  static constexpr std::string_view name = "gate_backward";
  Activation f{};
  Tensor x, dy;
  Target dx;
};

/// y_ij = x_ij + bias_j + residual_ij. bias [columns] is f64 if x is f64, otherwise f32. bias or
/// residual may be empty.
struct AddBias {
  static constexpr std::string_view name = "add_bias";
  Tensor x, bias = {}, residual = {};
  Tensor y;
};

void check(const Fill& op);
void check(const Copy& op);
void check(const Scale& op);
void check(const Activate& op);
void check(const ActivateBackward& op);
void check(const Gate& op);
void check(const GateBackward& op);
void check(const AddBias& op);

}  // namespace longhand
