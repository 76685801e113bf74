#pragma once

#include "autograd/variable.h"

namespace longhand {

/// What a Sink points to: the shape and type a gradient must have, and the gradient.
struct Sink::Slot {
  std::shared_ptr<Backend> backend;
  Shape shape;
  DType dtype;
  Tensor grad;
  bool shared;  // grad may be someone else's memory too: copy before changing it

  void own();
};

}  // namespace longhand
