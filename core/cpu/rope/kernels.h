#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

template <class T>
struct RopeKernels {
  struct Arguments {
    const T* x;
    const std::int32_t* positions;
    const float* table;
    std::int64_t columns, first_column, heads, width, dims;
    bool interleaved;
    float direction;  // factor of the rotation angles: 1 or -1
    T* y;
    Store how;
  };
  void (*rotate)(const Arguments& rows, std::int64_t begin, std::int64_t end);
};

template <class T>
struct RotateKernels {
  struct Arguments {
    /// Forward pass: x is the operand, and dy is null. Backward pass: x is the output y of the
    /// forward pass, and dy is the gradient of y.
    const T *x, *dy;
    const float* angles;  // rotation angles; null in the backward pass
    std::int64_t columns, first_column, heads, width, groups;
    float direction;  // factor of the rotation angles: 1 or -1
    T* y;
    float* dangles;
    Store how;
  };
  using Rows = void (*)(const Arguments& rows, std::int64_t begin, std::int64_t end);
  Rows forward, backward;
};

}  // namespace longhand::cpu
