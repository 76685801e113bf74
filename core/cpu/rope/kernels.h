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
    /// The kernel `forward` rotates x, and dy is null. The kernel `backward` computes the gradient
    /// of the angles: x is then the output of `forward`, and dy is the gradient of this output.
    const T *x, *dy;
    /// Angles by which `forward` rotates. Null for `backward`, which reads only x and dy.
    const float* angles;
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
