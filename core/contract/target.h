#pragma once

#include "core/tensor.h"

namespace longhand {

/// The tensor that receives a result of an operation. The result replaces the tensor's values or,
/// if `add` is set, is added to them. An empty target means that the result is not required.
/// Outputs whose type is Tensor instead of Target are always replaced.
struct Target {
  Tensor tensor;
  bool add = false;

  Target() = default;
  Target(Tensor where, bool adds = false) : tensor(std::move(where)), add(adds) {}  // NOLINT
  explicit operator bool() const { return static_cast<bool>(tensor); }
};

}  // namespace longhand
