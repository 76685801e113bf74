#include "core/contract/optimizer.h"

#include <cmath>

#include "core/contract/require.h"

namespace longhand {
namespace {

/// Message text for one tensor of a list: "parameters[3]". Made only when something is wrong, so
/// the checks of a long list cost no memory.
template <class... Parts>
void require_entry(bool condition, std::string_view op, std::string_view list, std::size_t index,
                   const Parts&... parts) {
  LONGHAND_CHECK(condition, op, ": ", list, "[", index, "]: ", parts...);
}

void require_like(std::string_view list, std::size_t index, const Tensor& x, const Tensor& like,
                  bool bf16_too) {
  const DType type = like.dtype();
  const bool types =
      x.dtype() == type || (bf16_too && type == DType::f32 && x.dtype() == DType::bf16);
  require_entry(static_cast<bool>(x), Adam::name, list, index, "expected ", like.shape(), " ", type,
                ", got none");
  require_entry(x.shape() == like.shape() && types, Adam::name, list, index, "expected ",
                like.shape(), " ", type, bf16_too ? " or bf16" : "", ", got ", x.shape(), " ",
                x.dtype());
  require_entry(&x.backend() == &like.backend(), Adam::name, list, index,
                "expected the backend of its parameter, got another");
}

void require_count(std::string_view list, std::size_t count, std::size_t expected) {
  LONGHAND_CHECK(count == expected, Adam::name, ": ", list, ": expected ", expected,
                 " (as parameters), got ", count);
}

}  // namespace

void check(const GlobalNorm& op) {
  Arguments are(GlobalNorm::name);
  are.floats("norm", op.norm);
  const DType master = master_type(op.norm.dtype());
  are.require(op.norm.shape() == Shape{1} && op.norm.dtype() == master, "norm", "expected [1] ",
              master, ", got ", op.norm.shape(), " ", op.norm.dtype());
  if (op.losses) are.in("losses", op.losses, Shape{op.losses.size()}, master);
  are.out("factor", op.factor, Shape{1}, master);
  are.require(op.largest >= 0, "largest", "expected at least 0, got ", op.largest);
  for (std::size_t i = 0; i < op.tensors.size(); ++i) {
    const Tensor& x = op.tensors[i];
    require_entry(static_cast<bool>(x), GlobalNorm::name, "tensors", i,
                  "expected a tensor, got none");
    require_entry(x.dtype() == master, GlobalNorm::name, "tensors", i, "expected ", master,
                  ", got ", x.dtype());
    require_entry(&x.backend() == &op.norm.backend(), GlobalNorm::name, "tensors", i,
                  "expected the backend of norm, got another");
  }
}

void check(const Adam& op) {
  Arguments are(Adam::name);
  const std::size_t count = op.parameters.size();
  require_count("gradients", op.gradients.size(), count);
  require_count("m", op.m.size(), count);
  require_count("v", op.v.size(), count);
  require_count("decay", op.decay.size(), count);
  are.require(op.beta1 >= 0 && op.beta1 < 1, "beta1", "expected 0 <= beta1 < 1, got ", op.beta1);
  are.require(op.beta2 >= 0 && op.beta2 < 1, "beta2", "expected 0 <= beta2 < 1, got ", op.beta2);
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& w = op.parameters[i];
    require_entry(static_cast<bool>(w), Adam::name, "parameters", i, "expected a tensor, got none");
    const DType type = w.dtype();
    require_entry(is_float(type) && master_type(type) == type, Adam::name, "parameters", i,
                  "expected f32 or f64, got ", type);
    require_entry(type == op.parameters[0].dtype() && &w.backend() == &op.parameters[0].backend(),
                  Adam::name, "parameters", i,
                  "expected the type and the backend of parameters[0], got another");
    require_like("gradients", i, op.gradients[i], w, false);
    require_like("m", i, op.m[i], w, true);
    require_like("v", i, op.v[i], w, true);
  }
  if (count == 0) return;
  are.any("parameters", op.parameters[0]);
  are.in("now", op.now, Shape{3}, op.parameters[0].dtype());
  if (op.factor) are.in("factor", op.factor, Shape{1}, op.parameters[0].dtype());
}

std::array<double, 3> adam_now(double rate, std::int64_t step, double beta1, double beta2) {
  LONGHAND_CHECK(step >= 1, Adam::name, ": step: expected at least 1, got ", step);
  const auto s = static_cast<double>(step);
  return {rate, rate / (1 - std::pow(beta1, s)), 1 / (1 - std::pow(beta2, s))};
}

}  // namespace longhand
