#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/error.h"
#include "cuda/emulator/copies.h"
#include "cuda/emulator/scheduler.h"
#include "cuda/emulator/watch.h"

/// The part of CUDA's language that our kernels use, for g++: thread indices, barriers, warp
/// operations, integer atomics and a few functions. There are no atomics on floats, so a kernel
/// with such an atomic does not compile.

// The attribute makes the compiler list the address of each kernel in a table. The tests find all
// kernels in this table.
#define __global__ __attribute__((noinline, patchable_function_entry(1, 0)))
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static thread_local  // each resident block has its own OS thread
#define __constant__ static const
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)

#define threadIdx ::longhand::emulator::thread_index
#define blockIdx ::longhand::emulator::block_index
#define blockDim ::longhand::emulator::block_size
#define gridDim ::longhand::emulator::grid_size

// Last parameters of a function, whose default arguments are the caller's file and line.
#define LONGHAND_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(LONGHAND_SITE) { longhand::emulator::block_barrier({file, line}); }

namespace longhand::emulator {

template <class T>
void warp_value(unsigned mask, T& payload, Finish finish, const char* file, int line) {
  warp_together(mask, &payload, finish, {file, line});
}

template <class T>
struct Moved {
  T value;
  int source;  // the lane to read from
  T result;
};

/// Every lane of the mask passes the number `source` of a lane and receives that lane's value. Lane
/// `source` must also be in the mask.
template <class T>
T shuffle(unsigned mask, T value, int source, const char* file, int line) {
  Moved<T> moved{value, source, value};
  warp_value(
      mask, moved,
      [](void* const payloads[32]) {
        for (int lane = 0; lane < 32; ++lane) {
          if (!payloads[lane]) continue;
          auto& to = *static_cast<Moved<T>*>(payloads[lane]);
          const auto* from = static_cast<const Moved<T>*>(payloads[to.source & 31]);
          if (!from) fail_in_kernel("a shuffle reads a lane that takes no part");
          to.result = from->value;
        }
      },
      file, line);
  return moved.result;
}

inline int lane_of_thread() {
  return static_cast<int>(
      (thread_index.x + block_size.x * (thread_index.y + block_size.y * thread_index.z)) % 32);
}

template <class T>
struct Folded {
  T value, result;
};

/// Combines the values of all lanes of the mask. Every lane receives the result.
template <class T, class Combine>
T fold(unsigned mask, T value, Combine, const char* file, int line) {
  Folded<T> folded{value, value};
  warp_value(
      mask, folded,
      [](void* const payloads[32]) {
        T all{};
        bool first = true;
        for (int lane = 0; lane < 32; ++lane) {
          if (!payloads[lane]) continue;
          const T one = static_cast<const Folded<T>*>(payloads[lane])->value;
          all = first ? one : Combine{}(all, one);
          first = false;
        }
        for (int lane = 0; lane < 32; ++lane) {
          if (payloads[lane]) static_cast<Folded<T>*>(payloads[lane])->result = all;
        }
      },
      file, line);
  return folded.result;
}

/// Combines the values of all threads of the block. Every thread receives the result.
template <class Combine>
int fold_block(int value, Combine, const char* file, int line) {
  Folded<int> folded{value, value};
  block_together(&folded,
                 [](void* const* payloads, int threads) {
                   int all = static_cast<const Folded<int>*>(payloads[0])->value;
                   for (int i = 1; i < threads; ++i) {
                     all = Combine{}(all, static_cast<const Folded<int>*>(payloads[i])->value);
                   }
                   for (int i = 0; i < threads; ++i)
                     static_cast<Folded<int>*>(payloads[i])->result = all;
                 },
                 {file, line});
  return folded.result;
}

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Least {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct Most {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Union {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Common {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};

}  // namespace longhand::emulator

inline void __syncwarp(unsigned mask = 0xffffffffu, LONGHAND_SITE) {
  int nothing = 0;
  longhand::emulator::warp_value(
      mask, nothing, [](void* const*) { longhand::emulator::watch::warp_barrier(); }, file, line);
}
inline int __syncthreads_count(int flag, LONGHAND_SITE) {
  return longhand::emulator::fold_block(flag != 0, longhand::emulator::Sum{}, file, line);
}
inline int __syncthreads_or(int flag, LONGHAND_SITE) {
  return longhand::emulator::fold_block(flag != 0, longhand::emulator::Union{}, file, line);
}
inline int __syncthreads_and(int flag, LONGHAND_SITE) {
  return longhand::emulator::fold_block(flag != 0, longhand::emulator::Common{}, file, line);
}

// As in CUDA, an up, down or xor shuffle that reaches past the lane's group of `width` lanes
// returns the calling lane's own value.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, LONGHAND_SITE) {
  const int lane = longhand::emulator::lane_of_thread();
  return longhand::emulator::shuffle(mask, value, (lane & ~(width - 1)) + (source & (width - 1)),
                                     file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, LONGHAND_SITE) {
  const int lane = longhand::emulator::lane_of_thread();
  const int from = lane - static_cast<int>(delta);
  return longhand::emulator::shuffle(mask, value, from < (lane & ~(width - 1)) ? lane : from, file,
                                     line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, LONGHAND_SITE) {
  const int lane = longhand::emulator::lane_of_thread();
  const int from = lane + static_cast<int>(delta);
  return longhand::emulator::shuffle(mask, value, from > (lane | (width - 1)) ? lane : from, file,
                                     line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, LONGHAND_SITE) {
  const int lane = longhand::emulator::lane_of_thread();
  const int from = lane ^ lanes;
  return longhand::emulator::shuffle(mask, value, from > (lane | (width - 1)) ? lane : from, file,
                                     line);
}

inline unsigned __ballot_sync(unsigned mask, int flag, LONGHAND_SITE) {
  const unsigned bit = flag ? 1u << longhand::emulator::lane_of_thread() : 0u;
  return longhand::emulator::fold(mask, bit, longhand::emulator::Union{}, file, line);
}
inline int __any_sync(unsigned mask, int flag, LONGHAND_SITE) {
  return longhand::emulator::fold(mask, flag != 0 ? 1 : 0, longhand::emulator::Union{}, file, line);
}
inline int __all_sync(unsigned mask, int flag, LONGHAND_SITE) {
  return longhand::emulator::fold(mask, flag != 0 ? 1 : 0, longhand::emulator::Common{}, file,
                                  line);
}
template <class T>
T __reduce_add_sync(unsigned mask, T value, LONGHAND_SITE) {
  static_assert(std::is_integral_v<T>);
  return longhand::emulator::fold(mask, value, longhand::emulator::Sum{}, file, line);
}
template <class T>
T __reduce_min_sync(unsigned mask, T value, LONGHAND_SITE) {
  static_assert(std::is_integral_v<T>);
  return longhand::emulator::fold(mask, value, longhand::emulator::Least{}, file, line);
}
template <class T>
T __reduce_max_sync(unsigned mask, T value, LONGHAND_SITE) {
  static_assert(std::is_integral_v<T>);
  return longhand::emulator::fold(mask, value, longhand::emulator::Most{}, file, line);
}

namespace longhand::emulator {
// Atomic operations report their accesses to the race detector (watch.h) themselves. The attribute
// no_sanitize prevents the compiler from reporting the same access again, as a plain access.
template <class T, class F>
__attribute__((no_sanitize("thread"))) T exchange(T* address, F&& changed) {
  static_assert(std::is_integral_v<T>, "no atomics on floats: their order is not repeatable");
  watch::atomic(address, sizeof(T));
  const T old = *address;
  *address = static_cast<T>(changed(old));
  return old;
}
}  // namespace longhand::emulator

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return longhand::emulator::exchange(address, [&](T old) { return old + value; });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return longhand::emulator::exchange(address, [&](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return longhand::emulator::exchange(address, [&](T old) { return value < old ? value : old; });
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return longhand::emulator::exchange(address, [&](T old) { return old | value; });
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return longhand::emulator::exchange(address, [&](T) { return value; });
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return longhand::emulator::exchange(address,
                                      [&](T old) { return old == expected ? value : old; });
}
inline void __threadfence() { longhand::emulator::watch::fence(); }
inline void __threadfence_block() {}

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
template <class T>
T __ldg(const T* address) {
  return *address;
}
using std::max;
using std::min;

namespace longhand::cuda {

template <class T>
T* shared_memory() {
  return static_cast<T*>(emulator::shared_bytes());
}

/// Checks the address of a 16-byte access. The device refuses addresses that are not multiples
/// of 16.
inline void require_16_byte_boundary(const void* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) {
    emulator::fail_in_kernel("a 16-byte access at an address that is no multiple of 16");
  }
}

inline void let_others_run(LONGHAND_SITE) { emulator::let_others_run({file, line}); }

inline void copy_async(void* to, const void* from, bool there) {
  require_16_byte_boundary(to);
  require_16_byte_boundary(from);
  emulator::copies().issue(to, there ? from : nullptr);
}
inline void commit_copies() { emulator::copies().commit(); }
template <int but>
void wait_for_copies() {
  emulator::copies().wait(but);
}

}  // namespace longhand::cuda
