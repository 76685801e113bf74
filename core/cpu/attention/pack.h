#pragma once

#include <cstdint>
#include <utility>

#include "core/cpu/attention/kernels.h"
#include "core/cpu/simd.h"

/// Copies of blocks of heads into scratch, laid out for the tiles. Operands of every element type
/// become f32 words here.
namespace longhand::cpu::LONGHAND_ISA::attention {

inline constexpr int panel = static_cast<int>(attention_panel);

constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t most(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
constexpr std::int64_t between(std::int64_t x, std::int64_t low, std::int64_t high) {
  return least(most(x, low), high);
}
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// The length of a packed row of `width` entries: whole vectors, and for wide heads an odd number
/// of 256-byte pieces, so that a column of 64 rows spreads over the cache's sets.
constexpr std::int64_t packed_width(std::int64_t width) {
  const std::int64_t whole = round_up(width, lanes);
  if (whole <= 64) return whole;
  const std::int64_t pieces = (whole + 63) / 64;
  return (pieces + 1 - pieces % 2) * 64;
}

/// One step of a transpose: lanes of `a` and `b` whose index has the bit `half` change places.
template <int half>
[[gnu::always_inline]] inline void exchange(FloatLanes& a, FloatLanes& b) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    const FloatLanes x = a, y = b;
    a = __builtin_shufflevector(x, y, ((i & half) == 0 ? i : lanes + i - half)...);
    b = __builtin_shufflevector(x, y, ((i & half) == 0 ? i + half : lanes + i)...);
  }
  (std::make_integer_sequence<int, lanes>{});
}

template <int half = lanes / 2>
[[gnu::always_inline]] inline void transpose(FloatLanes (&rows)[lanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    if ((i & half) == 0) exchange<half>(rows[i], rows[i + half]);
  }
  if constexpr (half > 1) transpose<half / 2>(rows);
}

/// to[c][t] = x_t,c times[t] for t < panel, zeros for t >= rows; only the vectors with rows in
/// them are written.
template <class T>
void pack_transposed(HeadRows<const T> x, std::int64_t rows, std::int64_t width, const float* times,
                     float* to) {
  for (std::int64_t t = 0; t < rows; t += lanes) {
    const Vec factor = load(times + t);
    for (std::int64_t c = 0; c < width; c += lanes) {
      const int columns = static_cast<int>(width - c < lanes ? width - c : lanes);
      FloatLanes square[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) {
        if (t + i >= rows) {
          square[i] = FloatLanes{};
        } else if (columns == lanes) {
          square[i] = load(x.row(t + i) + c).v;
        } else {
          square[i] = load_first(x.row(t + i) + c, columns).v;
        }
      }
      transpose(square);
      if (columns == lanes) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i) store(to + (c + i) * panel + t, factor * Vec(square[i]));
      } else {
        for (int i = 0; i < columns; ++i) {
          store(to + (c + i) * panel + t, factor * Vec(square[i]));
        }
      }
    }
  }
}

/// to[t][c] = x_t,c, and zeros up to a whole vector.
template <class T>
void pack_rows(HeadRows<const T> x, std::int64_t rows, std::int64_t width, float* to,
               std::int64_t stride) {
  const std::int64_t whole = width / lanes * lanes;
  const int rest = static_cast<int>(width - whole);
  for (std::int64_t t = 0; t < rows; ++t) {
    const T* from = x.row(t);
    float* row = to + t * stride;
    for (std::int64_t c = 0; c < whole; c += lanes) store(row + c, load(from + c));
    if (rest != 0) store(row + whole, load_first(from + whole, rest));
  }
}

/// to[t][c] = (1 - gamma) v_t,c + gamma y_t,c: what later rows of ChaCAL attend to.
template <class T>
void pack_chained(HeadRows<const T> v, HeadRows<const T> y, float gamma, std::int64_t rows,
                  std::int64_t width, float* to, std::int64_t stride) {
  const Vec own(1.0f - gamma), past(gamma);
  const std::int64_t whole = width / lanes * lanes;
  const int rest = static_cast<int>(width - whole);
  for (std::int64_t t = 0; t < rows; ++t) {
    const T *values = v.row(t), *outputs = y.row(t);
    float* row = to + t * stride;
    for (std::int64_t c = 0; c < whole; c += lanes) {
      store(row + c, fma(past, load(outputs + c), own * load(values + c)));
    }
    if (rest != 0) {
      store(row + whole,
            fma(past, load_first(outputs + whole, rest), own * load_first(values + whole, rest)));
    }
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
