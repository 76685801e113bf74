#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "cuda/device.h"

namespace longhand::cuda {

/// Number of entries of T that one 16-byte access moves.
template <class T>
inline constexpr int full_width = static_cast<int>(16 / sizeof(T));

/// A pack: neighbouring entries of a tensor that are loaded or stored together. In registers, the
/// entries are f32. In memory, a pack of more than one entry must be aligned to 16 bytes, or to its
/// own size if that is smaller.
template <int width>
struct Floats {
  float at[width];
};

namespace detail {
template <class T, int width>
inline constexpr std::size_t boundary = sizeof(T) * width < 16 ? sizeof(T) * width : 16;
template <class T, int width>
struct alignas(boundary<T, width>) Stored {
  T at[width];
};
}  // namespace detail

template <int width, class T>
__device__ __forceinline__ Floats<width> load(const T* x) {
  if constexpr (detail::boundary<T, width> == 16) require_16_byte_boundary(x);
  const auto stored = *reinterpret_cast<const detail::Stored<T, width>*>(x);
  Floats<width> floats;
#pragma unroll
  for (int k = 0; k < width; ++k) floats.at[k] = to_float(stored.at[k]);
  return floats;
}

template <int width, class T>
__device__ __forceinline__ void store(T* y, const Floats<width>& floats) {
  if constexpr (detail::boundary<T, width> == 16) require_16_byte_boundary(y);
  detail::Stored<T, width> stored;
#pragma unroll
  for (int k = 0; k < width; ++k) stored.at[k] = from_float<T>(floats.at[k]);
  *reinterpret_cast<detail::Stored<T, width>*>(y) = stored;
}

/// An array that receives results. If `add` is true, results are added to the entries of y.
/// Otherwise they replace the entries.
template <class T>
struct Out {
  T* y;
  bool add;

  template <int width>
  __device__ __forceinline__ void put(std::int64_t i, Floats<width> floats) const {
    if (add) {
      const Floats<width> old = load<width>(y + i);
#pragma unroll
      for (int k = 0; k < width; ++k) floats.at[k] += old.at[k];
    }
    store(y + i, floats);
  }
};

/// Calls body(width), where `width` is the number of entries that a thread loads or stores at once:
/// full_width<T> if `fits` is true, otherwise 1. The caller sets `fits` if accesses to
/// full_width<T> entries are aligned.
template <class T, class Body>
void with_width(bool fits, Body&& body) {
  if (fits) return body(std::integral_constant<int, full_width<T>>{});
  body(std::integral_constant<int, 1>{});
}

/// Row and column of an entry of a matrix. row_column() computes them from the entry's index i in
/// row-major order. If i and `columns` are below 2^32, it uses 32-bit division, which is faster.
struct RowColumn {
  std::int64_t row, column;
};
__device__ __forceinline__ RowColumn row_column(std::int64_t i, std::int64_t columns) {
  if (((i | columns) >> 32) == 0) {
    const auto small = static_cast<std::uint32_t>(i), n = static_cast<std::uint32_t>(columns);
    return {small / n, small % n};
  }
  return {i / columns, i % columns};
}

/// Default number of threads per block.
inline constexpr int block_threads = 256;

/// Number of blocks in a grid that has at least one thread per item.
inline std::int64_t grid_of(std::int64_t items) {
  return (items + block_threads - 1) / block_threads;
}

}  // namespace longhand::cuda
