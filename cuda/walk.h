#pragma once

#include "core/contract/steps.h"
#include "cuda/floats.h"

namespace longhand::cuda {

/// The positions of one entry in all operands of a Walk, a loop over the entries of several
/// operands (core/contract/steps.h).
template <int operands>
struct Places {
  std::int64_t at[operands];
};
template <int operands>
__device__ __forceinline__ Places<operands> places(const Walk<operands>& walk, RowColumn entry) {
  const RowColumn last = row_column(entry.row, walk.outer[2]);
  const RowColumn middle = row_column(last.row, walk.outer[1]);
  Places<operands> places;
#pragma unroll
  for (int k = 0; k < operands; ++k) {
    places.at[k] = walk.first[k] + middle.row * walk.outer_step[0][k] +
                   middle.column * walk.outer_step[1][k] + last.column * walk.outer_step[2][k] +
                   entry.column * walk.inner_step[k];
  }
  return places;
}

/// Loads `width` neighbouring entries along the innermost axis of a Walk. If `repeats` is true,
/// loads one entry instead and returns it `width` times.
template <int width, class T>
__device__ __forceinline__ Floats<width> load_line(const T* x, bool repeats) {
  if (!repeats) return load<width>(x);
  const float one = load<1>(x).at[0];
  Floats<width> all;
#pragma unroll
  for (int k = 0; k < width; ++k) all.at[k] = one;
  return all;
}

/// True if operand k of the Walk can be accessed in packs of `width` neighbouring entries that
/// begin at multiples of `width`.
template <int operands>
bool in_packs(const Walk<operands>& walk, int k, int width) {
  const auto whole = [&](std::int64_t n) { return n % width == 0; };
  return walk.inner_step[k] == 1 && whole(walk.inner) && whole(walk.first[k]) &&
         whole(walk.outer_step[0][k]) && whole(walk.outer_step[1][k]) &&
         whole(walk.outer_step[2][k]);
}

}  // namespace longhand::cuda
