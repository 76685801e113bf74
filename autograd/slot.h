#pragma once

#include "autograd/variable.h"

namespace longhand {

/// The data behind a Sink, which accumulates the gradient of one value: the gradient, and the shape
/// and type that it must have.
struct Sink::Slot {
  std::shared_ptr<Backend> backend;
  Shape shape;
  DType dtype;
  Tensor grad;
  bool shared;  // grad may share memory with another tensor: copy it before changing it

  void own();
};

}  // namespace longhand
