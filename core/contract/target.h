#pragma once

#include "core/tensor.h"

namespace longhand {

/// Target of a result. The result replaces the tensor's values or, if `add` is set, is added to
/// them. An empty target means that the result is not required. Outputs of the contract that are
/// plain Tensors are always replaced.
struct Target {
  Tensor tensor;
  bool add = false;

  Target() = default;
  Target(Tensor where, bool adds = false) : tensor(std::move(where)), add(adds) {}  // NOLINT
  explicit operator bool() const { return static_cast<bool>(tensor); }
};

}  // namespace longhand
