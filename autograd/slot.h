#pragma once

#include "autograd/variable.h"

namespace longhand {

/// The target of a Sink: the shape and type that a gradient must have, and the gradient.
struct Sink::Slot {
  std::shared_ptr<Backend> backend;
  Shape shape;
  DType dtype;
  Tensor grad;
  bool shared;  // grad may be another tensor's memory: copy before changing it

  void own();
};

}  // namespace longhand
