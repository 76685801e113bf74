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
    float direction;  // -1: inverse
    T* y;
    Store how;
  };
  void (*rotate)(const Arguments& rows, std::int64_t begin, std::int64_t end);
};

}  // namespace longhand::cpu
