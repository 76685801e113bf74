#pragma once

#include <cstdint>

#include "core/dtype.h"

/// Functions and types that all kernels use. nvcc compiles kernels with CUDA's declarations. For
/// the tests, g++ compiles them with the emulator's declarations, which have the same names.
/// cuda/launch.h launches kernels.
#if defined(LONGHAND_CUDA_EMULATED)
#include "cuda/emulator/device.h"
#else
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace longhand::cuda {

/// The launch's dynamic shared memory, aligned to 16 bytes.
template <class T>
__device__ __forceinline__ T* shared_memory() {
  extern __shared__ __align__(16) unsigned char longhand_shared[];
  return reinterpret_cast<T*>(longhand_shared);
}

__device__ __forceinline__ void require_16_byte_boundary(const void*) {}

/// A loop that waits for another block must call this function. The emulator then runs other
/// blocks.
__device__ __forceinline__ void let_others_run() {}

/// Starts an asynchronous copy of 16 bytes from global to shared memory. If `there` is false, 16
/// zero bytes are stored instead. Both addresses are multiples of 16. The bytes may arrive at any
/// time until the thread has waited for the group of copies to which this copy belongs
/// (commit_copies, wait_for_copies). Other threads see the bytes after the next barrier.
__device__ __forceinline__ void copy_async(void* to, const void* from, bool there) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(at), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
/// Puts all copies since the last commit into one group.
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until all of the thread's groups of copies have arrived, except the last `but` groups.
template <int but>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(but) : "memory");
}

}  // namespace longhand::cuda
#endif

namespace longhand::cuda {

inline constexpr int warp_size = 32;
inline constexpr unsigned full_warp = 0xffffffffu;

// Blocks are one-dimensional, and their number of threads is a multiple of 32.
__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x) % warp_size; }
/// Same as lane_index(), but read from the hardware at each call, so that values computed from it
/// occupy no register between calls.
__device__ __forceinline__ int lane_register() {
#if defined(LONGHAND_CUDA_EMULATED)
  return lane_index();
#else
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
#endif
}
__device__ __forceinline__ int warp_index() { return static_cast<int>(threadIdx.x) / warp_size; }

/// thread_in_grid() is the thread's index in the grid, and threads_in_grid() the number of threads
/// in the grid. Kernels use both for loops over all elements.
__device__ __forceinline__ std::int64_t thread_in_grid() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::int64_t threads_in_grid() {
  return std::int64_t{gridDim.x} * blockDim.x;
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
__device__ __forceinline__ float to_float(std::int32_t x) { return static_cast<float>(x); }
__device__ __forceinline__ float to_float(std::uint8_t x) { return static_cast<float>(x); }

/// Converts a float to T; bf16 rounds to nearest, ties to even.
template <class T>
__device__ __forceinline__ T from_float(float x) {
  if constexpr (std::is_same_v<T, bf16>) {
#if defined(LONGHAND_CUDA_EMULATED)
    return bf16(x);
#else
    bf16 rounded;
    rounded.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return rounded;
#endif
  } else {
    return static_cast<T>(x);
  }
}

/// 16 bytes with entries of type T, read and written by one instruction.
template <class T>
struct alignas(16) Pack {
  static constexpr int size = 16 / static_cast<int>(sizeof(T));
  T at[16 / sizeof(T)];
};

template <class T>
__device__ __forceinline__ Pack<T> load_pack(const T* from) {
  require_16_byte_boundary(from);
  return *reinterpret_cast<const Pack<T>*>(from);
}
template <class T>
__device__ __forceinline__ void store_pack(T* to, const Pack<T>& pack) {
  require_16_byte_boundary(to);
  *reinterpret_cast<Pack<T>*>(to) = pack;
}

/// Sums x over the 32 lanes of a warp in a fixed order; every lane receives the sum.
__device__ __forceinline__ float warp_sum(float x) {
  for (int distance = warp_size / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(full_warp, x, distance);
  }
  return x;
}

/// Sums x over all threads of a block; every thread receives the sum. The sums of the warps are
/// computed first and are then added, in a fixed order. `scratch` points to 32 floats of shared
/// memory, which may be used for other data after the next barrier.
__device__ __forceinline__ float block_sum(float x, float* scratch) {
  x = warp_sum(x);
  if (lane_index() == 0) scratch[warp_index()] = x;
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  return warp_sum(lane_index() < warps ? scratch[lane_index()] : 0.0f);
}

/// True if all of these addresses are multiples of 16, as 16-byte accesses require.
template <class... T>
bool on_16_bytes(const T*... addresses) {
  return ((reinterpret_cast<std::uintptr_t>(addresses) % 16 == 0) && ...);
}

}  // namespace longhand::cuda
