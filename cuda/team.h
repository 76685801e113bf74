#pragma once

#include <limits>
#include <type_traits>

#include "cuda/floats.h"

/// Teams: groups of threads that process a row together. All threads of a block must call a team's
/// sum() and reduce() together. If the team is part of a warp, it suffices that all lanes of the
/// warp call these functions together.
namespace longhand::cuda {

/// Returns the value that another lane of the warp passed: the lane whose index is this lane's
/// index xor `step`. If V is a struct, it must have a member function exchanged(step) that returns
/// the other lane's value.
template <class V>
__device__ __forceinline__ V exchange(const V& value, int step) {
  if constexpr (std::is_arithmetic_v<V>) {
    return __shfl_xor_sync(full_warp, value, step);
  } else {
    return value.exchanged(step);
  }
}

/// Combines the values of `lanes` neighbouring lanes with f, which must be commutative. All of
/// these lanes receive the same result.
template <int lanes, class V, class F>
__device__ __forceinline__ V reduce_lanes(V value, const F& f) {
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) value = f(value, exchange(value, step));
  return value;
}

struct Sum {
  static constexpr float start = 0;
  template <class V>
  __device__ __forceinline__ V operator()(V a, V b) const {
    return a + b;
  }
};
/// Returns the maximum of two numbers, or NaN if one of them is NaN.
struct Largest {
  static constexpr float start = -std::numeric_limits<float>::infinity();
  __device__ __forceinline__ float operator()(float a, float b) const {
    return b > a || b != b ? b : a;
  }
};

/// A team of `lanes` neighbouring lanes of a warp. `lanes` is a power of two up to 32.
template <int lanes>
struct Lanes {
  static constexpr int threads = lanes;
  static constexpr int per_block(int block) { return block / lanes; }
  __device__ __forceinline__ static int rank() { return static_cast<int>(threadIdx.x) % lanes; }
  __device__ __forceinline__ static int index() { return static_cast<int>(threadIdx.x) / lanes; }
  template <class V, class F>
  __device__ __forceinline__ static V reduce(V value, const F& f) {
    return reduce_lanes<lanes>(value, f);
  }
  __device__ __forceinline__ static float sum(float value) { return reduce(value, Sum{}); }
};

/// A team of all block_threads threads of a block.
struct Block {
  static constexpr int threads = block_threads;
  static constexpr int per_block(int) { return 1; }
  __device__ __forceinline__ static int rank() { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ static int index() { return 0; }
  template <class V, class F>
  __device__ __forceinline__ static V reduce(V value, const F& f) {
    constexpr int warps = block_threads / 32;
    __shared__ V of_warp[warps];
    value = reduce_lanes<32>(value, f);
    if (lane_index() == 0) of_warp[warp_index()] = value;
    __syncthreads();
    value = reduce_lanes<warps>(of_warp[threadIdx.x % warps], f);
    __syncthreads();  // after this barrier, of_warp may be overwritten
    return value;
  }
  __device__ __forceinline__ static float sum(float value) { return reduce(value, Sum{}); }
};

}  // namespace longhand::cuda
