#include "core/contract/optimizer.h"

#include <cmath>

#include "core/contract/require.h"

namespace longhand {
namespace {

/// Checks a condition on one tensor of a list. The error message names the tensor, for example
/// "parameters[3]". The message is only built for an error, so checking a long list allocates
/// nothing.
template <class... Parts>
void require_entry(bool condition, std::string_view op, std::string_view list, std::size_t index,
                   const Parts&... parts) {
  LONGHAND_CHECK(condition, op, ": ", list, "[", index, "]: ", parts...);
}

void require_like(std::string_view op, std::string_view list, std::size_t index, const Tensor& x,
                  const Tensor& like, bool bf16_too) {
  const DType type = like.dtype();
  const bool types =
      x.dtype() == type || (bf16_too && type == DType::f32 && x.dtype() == DType::bf16);
  require_entry(static_cast<bool>(x), op, list, index, "expected ", like.shape(), " ", type,
                ", got none");
  require_entry(x.shape() == like.shape() && types, op, list, index, "expected ", like.shape(), " ",
                type, bf16_too ? " or bf16" : "", ", got ", x.shape(), " ", x.dtype());
  require_entry(&x.backend() == &like.backend(), op, list, index,
                "expected the backend of its parameter, got another");
}

void require_count(std::string_view op, std::string_view list, std::size_t count,
                   std::size_t expected) {
  LONGHAND_CHECK(count == expected, op, ": ", list, ": expected ", expected,
                 " entries, one for each parameter, got ", count);
}

/// Checks parameters[i]. The parameters must all be f32 or all be f64, and all be in one backend.
void require_parameter(std::string_view op, const std::vector<Tensor>& parameters, std::size_t i) {
  const Tensor& w = parameters[i];
  require_entry(static_cast<bool>(w), op, "parameters", i, "expected a tensor, got none");
  const DType type = w.dtype();
  require_entry(is_float(type) && master_type(type) == type, op, "parameters", i,
                "expected f32 or f64, got ", type);
  require_entry(type == parameters[0].dtype() && &w.backend() == &parameters[0].backend(), op,
                "parameters", i, "expected the type and the backend of parameters[0], got another");
}

}  // namespace

void check(const SquareSums& op) {
  constexpr std::string_view name = SquareSums::name;
  LONGHAND_CHECK(op.sums.size() == op.tensors.size(), name, ": sums: expected ", op.tensors.size(),
                 " entries, one for each tensor, got ", op.sums.size());
  for (std::size_t i = 0; i < op.tensors.size(); ++i) {
    const Tensor &x = op.tensors[i], &y = op.sums[i];
    require_entry(static_cast<bool>(x), name, "tensors", i, "expected a tensor, got none");
    const DType type = x.dtype();
    require_entry(is_float(type) && master_type(type) == type, name, "tensors", i,
                  "expected f32 or f64, got ", type);
    require_entry(type == op.tensors[0].dtype() && &x.backend() == &op.tensors[0].backend(), name,
                  "tensors", i, "expected the type and the backend of tensors[0], got another");
    const Shape shape{SquareSums::pieces(x.size())};
    require_entry(static_cast<bool>(y), name, "sums", i, "expected ", shape, ' ', type,
                  ", got none");
    require_entry(y.shape() == shape && y.dtype() == type, name, "sums", i, "expected ", shape, ' ',
                  type, ", got ", y.shape(), ' ', y.dtype());
    require_entry(&y.backend() == &x.backend(), name, "sums", i,
                  "expected the backend of its tensor, got another");
  }
}

void check(const GlobalNorm& op) {
  Arguments are(GlobalNorm::name);
  are.floats("norm", op.norm);
  const DType master = master_type(op.norm.dtype());
  are.require(op.norm.shape() == Shape{1} && op.norm.dtype() == master, "norm", "expected [1] ",
              master, ", got ", op.norm.shape(), " ", op.norm.dtype());
  if (op.losses) are.in("losses", op.losses, Shape{op.losses.size()}, master);
  are.out("factor", op.factor, Shape{1}, master);
  are.require(op.largest >= 0, "largest", "expected at least 0, got ", op.largest);
  are.in("squares", op.squares, Shape{op.squares ? op.squares.size() : 0}, master);
}

void check(const Adam& op) {
  Arguments are(Adam::name);
  const std::size_t count = op.parameters.size();
  require_count(Adam::name, "gradients", op.gradients.size(), count);
  require_count(Adam::name, "m", op.m.size(), count);
  require_count(Adam::name, "v", op.v.size(), count);
  require_count(Adam::name, "decay", op.decay.size(), count);
  are.require(op.beta1 >= 0 && op.beta1 < 1, "beta1", "expected 0 <= beta1 < 1, got ", op.beta1);
  are.require(op.beta2 >= 0 && op.beta2 < 1, "beta2", "expected 0 <= beta2 < 1, got ", op.beta2);
  are.require(std::isfinite(op.epsilon) && op.epsilon >= 0, "epsilon",
              "expected a number of at least 0, got ", op.epsilon);
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& w = op.parameters[i];
    require_parameter(Adam::name, op.parameters, i);
    require_like(Adam::name, "gradients", i, op.gradients[i], w, false);
    require_like(Adam::name, "m", i, op.m[i], w, true);
    require_like(Adam::name, "v", i, op.v[i], w, true);
  }
  if (count == 0) return;
  are.any("parameters", op.parameters[0]);
  are.in("now", op.now, Shape{3}, op.parameters[0].dtype());
  if (op.factor) are.in("factor", op.factor, Shape{1}, op.parameters[0].dtype());
}

void check(const Sgd& op) {
  Arguments are(Sgd::name);
  const std::size_t count = op.parameters.size();
  require_count(Sgd::name, "gradients", op.gradients.size(), count);
  require_count(Sgd::name, "velocities", op.velocities.size(), count);
  require_count(Sgd::name, "decay", op.decay.size(), count);
  are.require(op.momentum >= 0 && op.momentum < 1, "momentum", "expected 0 <= momentum < 1, got ",
              op.momentum);
  for (std::size_t i = 0; i < count; ++i) {
    require_parameter(Sgd::name, op.parameters, i);
    require_like(Sgd::name, "gradients", i, op.gradients[i], op.parameters[i], false);
    require_like(Sgd::name, "velocities", i, op.velocities[i], op.parameters[i], false);
  }
  if (count == 0) return;
  are.any("parameters", op.parameters[0]);
  are.in("rate", op.rate, Shape{1}, op.parameters[0].dtype());
  if (op.factor) are.in("factor", op.factor, Shape{1}, op.parameters[0].dtype());
}

std::array<double, 3> adam_now(double rate, std::int64_t step, double beta1, double beta2) {
  LONGHAND_CHECK(step >= 1, Adam::name, ": step: expected at least 1, got ", step);
  const auto s = static_cast<double>(step);
  return {rate, rate / (1 - std::pow(beta1, s)), 1 / (1 - std::pow(beta2, s))};
}

}  // namespace longhand
