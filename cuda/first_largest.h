#pragma once

#include "cuda/team.h"

namespace longhand::cuda {

/// The maximum of the entries that were passed to see(), and the first position where it occurred.
/// NaN never counts as larger than another entry.
struct FirstLargest {
  float value;
  int index;

  /// Includes the entry x at position `at`. Entries must be passed in the order of their positions.
  __device__ __forceinline__ void see(float x, int at) {
    if (x > value) {
      value = x;
      index = at;
    }
  }
  __device__ __forceinline__ FirstLargest exchanged(int step) const {
    return {exchange(value, step), exchange(index, step)};
  }

  struct Better {
    __device__ __forceinline__ FirstLargest operator()(const FirstLargest& a,
                                                       const FirstLargest& b) const {
      if (a.value == b.value) return {a.value, a.index < b.index ? a.index : b.index};
      return b.value > a.value ? b : a;
    }
  };
};

}  // namespace longhand::cuda
