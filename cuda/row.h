#pragma once

#include <limits>

#include "core/error.h"
#include "core/tensor.h"
#include "cuda/team.h"

/// Classes for kernels that process a tensor row by row. They determine how many threads share a
/// row and which entries of the row each thread processes.
namespace longhand::cuda {

/// How a team of threads shares a row. The row consists of packs of `width` entries, which are
/// assigned to the threads in turn. If kept > 0, each thread has at most `kept` packs of a row and
/// keeps them in registers. If kept = 0, rows may have any length, and each loop over a row reads
/// its packs again, mostly from a cache.
template <int width_, int kept_, class Team_>
struct RowLayout {
  static constexpr int width = width_, kept = kept_;
  using Team = Team_;

  static std::int64_t blocks(std::int64_t rows) {
    constexpr int teams = Team::per_block(block_threads);
    return (rows + teams - 1) / teams;
  }
  /// The row that this thread's team processes.
  __device__ __forceinline__ static std::int64_t row() {
    return static_cast<std::int64_t>(blockIdx.x) * Team::per_block(block_threads) + Team::index();
  }
  /// Calls f(slot, j) for each pack of this thread in a row of n entries. j is the first entry of
  /// the pack. `slot` counts the thread's packs, but is always 0 if kept = 0.
  template <class F>
  __device__ __forceinline__ static void each(int n, F&& f) {
    if constexpr (kept > 0) {
#pragma unroll
      for (int slot = 0; slot < kept; ++slot) {
        const int j = (slot * Team::threads + Team::rank()) * width;
        if (j < n) f(slot, j);
      }
    } else {
#pragma unroll 4
      for (int j = Team::rank() * width; j < n; j += Team::threads * width) f(0, j);
    }
  }
};

/// The entries of a row that one thread processes.
template <class T, class Layout>
class Row {
 public:
  static constexpr int width = Layout::width, kept = Layout::kept;

  __device__ __forceinline__ Row(const T* x, int n) : x_(x) {
    if constexpr (kept > 0) {
      Layout::each(n, [&](int slot, int j) { kept_floats_[slot] = load<width>(x_ + j); });
    }
  }
  /// The pack that begins at entry j of the row. It is this thread's pack number `slot`.
  __device__ __forceinline__ Floats<width> at(int slot, int j) const {
    if constexpr (kept > 0) return kept_floats_[slot];
    return load<width>(x_ + j);
  }

 private:
  const T* x_;
  Floats<width> kept_floats_[kept > 0 ? kept : 1];
};

/// Calls body with the RowLayout for rows of n entries of type T. `boundaries` is true if all rows
/// of all operands are aligned to 16 bytes.
template <class T, class Body>
void with_row_layout(std::int64_t n, bool boundaries, Body&& body) {
  constexpr int full = full_width<T>;
  if (boundaries && n % full == 0) {
    if (n <= 256) return body(RowLayout<full, 8 / full, Lanes<32>>{});
    if (n <= 1024) return body(RowLayout<full, 32 / full, Lanes<32>>{});
    return body(RowLayout<full, 0, Block>{});
  }
  if (n <= 256) return body(RowLayout<1, 8, Lanes<32>>{});
  body(RowLayout<1, 0, Block>{});
}

/// The length of the rows of x. Throws an Error if it is too large for kernels, which index the
/// entries of a row with 32 bits.
inline int row_length(std::string_view op, const Tensor& x) {
  LONGHAND_CHECK(x.columns() <= std::numeric_limits<int>::max() / 2, op,
                 ": expected rows of fewer than 2^30 entries on cuda, got ", x.shape());
  return static_cast<int>(x.columns());
}

}  // namespace longhand::cuda
