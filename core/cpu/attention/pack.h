#pragma once

#include <cstdint>
#include <utility>

#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/product.h"
#include "core/cpu/simd.h"

/// Packs blocks of heads into scratch, as the words that the tiles read.
namespace longhand::cpu::LONGHAND_ISA::attention {

inline constexpr int panel = static_cast<int>(attention_panel);
inline constexpr std::int64_t block = panel;  // keys processed together

constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t most(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
constexpr std::int64_t between(std::int64_t x, std::int64_t low, std::int64_t high) {
  return least(most(x, low), high);
}
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// Number of words for this many entries; for tiled products, rounded up to whole tiles.
template <class Product>
constexpr std::int64_t words(std::int64_t entries) {
  const std::int64_t needed = (entries + Product::depth - 1) / Product::depth;
  return Product::tiled ? round_up(needed, 16) : needed;
}

/// The length of a packed row of `width` words: whole vectors and rows of tiles, and for wide heads
/// an odd number of 256-byte pieces, so that a column of 64 rows spreads over the cache's sets.
constexpr std::int64_t packed_width(std::int64_t width) {
  const std::int64_t whole = round_up(width, 16);
  if (whole <= 64) return whole;
  const std::int64_t pieces = (whole + 63) / 64;
  return (pieces + 1 - pieces % 2) * 64;
}

/// Number of words in a packed block of keys or values, `width` wide, to be summed over.
template <class Product>
constexpr std::int64_t key_block(std::int64_t width) {
  const std::int64_t row = Product::tiled ? round_up(width, 16) : packed_width(width);
  return Product::parts * (block / Product::depth) * row;
}

/// Rows of a head as vectors of f32; zeros beyond the last row and column.
template <class T>
struct Source {
  HeadRows<const T> x;
  std::int64_t rows, width;

  [[gnu::always_inline]] Vec at(std::int64_t t, std::int64_t c) const {
    return t < rows ? part(x.row(t), c) : Vec(0.0f);
  }
  [[gnu::always_inline]] Vec part(const T* row, std::int64_t c) const {
    if (c + lanes <= width) return load(row + c);
    return c < width ? load_first(row + c, static_cast<int>(width - c)) : Vec(0.0f);
  }
};

/// U_j = (1 - gamma) v_j + gamma y_j: what later rows of ChaCAL read.
template <class T>
struct ChacalSource {
  Source<T> v, y;
  float gamma;

  [[gnu::always_inline]] Vec at(std::int64_t t, std::int64_t c) const {
    return fma(Vec(gamma), y.at(t, c), Vec(1.0f - gamma) * v.at(t, c));
  }
};

/// Rows whose entries are rounded to bf16, as in products that round their operands.
template <class T>
struct RoundedSource {
  Source<T> x;

  [[gnu::always_inline]] Vec at(std::int64_t t, std::int64_t c) const {
    return round_to(static_cast<const bf16*>(nullptr), x.at(t, c));
  }
};

/// Rows, each multiplied by a factor.
template <class T>
struct ScaledSource {
  Source<T> x;
  const float* times;

  [[gnu::always_inline]] Vec at(std::int64_t t, std::int64_t c) const {
    return Vec(times[t]) * x.at(t, c);
  }
};

/// One step of a transpose: exchanges the lanes of `a` and `b` whose index has the bit `half`.
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

/// Packs words c, c + 1, ... of row t, along the row.
template <class Product, class Rows>
[[gnu::always_inline]] inline Vec words_of(const Rows& x, std::int64_t t, std::int64_t c) {
  if constexpr (Product::depth == 1) {
    return Product::rounded(x.at(t, c));
  } else {
    return Product::neighbours(x.at(t, 2 * c), x.at(t, 2 * c + lanes));
  }
}

/// Packs a left operand of score_tiles, which sums along its rows, as to[t][c].
template <VectorProduct Product, class Rows>
void pack_left(const Rows& x, std::int64_t rows, std::int64_t width, float* to,
               std::int64_t stride) {
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t c = 0; c < words<Product>(width); c += lanes) {
      store(to + t * stride + c, words_of<Product>(x, t, c));
    }
  }
}

/// Packs a right operand of mix_queries or mix_keys, which sum over its rows, as to[t / depth][c].
template <VectorProduct Product, class Rows>
void pack_right(const Rows& x, std::int64_t rows, std::int64_t width, float* to,
                std::int64_t stride) {
  if constexpr (Product::depth == 1) {
    pack_left<Product>(x, rows, width, to, stride);
  } else {
    for (std::int64_t t = 0; t < rows; t += 2) {
      for (std::int64_t c = 0; c < width; c += lanes) {
        store(to + t / 2 * stride + c, Product::across(x.at(t, c), x.at(t + 1, c)));
      }
    }
  }
}

/// Packs blocks of keys one after the other, each in the layout of pack_right.
template <VectorProduct Product, class Rows>
void pack_key_blocks(const Rows& x, std::int64_t rows, std::int64_t width, float* to) {
  pack_right<Product>(x, rows, width, to, packed_width(width));
}

/// Packs the transpose: to[c][t] is word c of row t, and a row of `to` has `panel` words. If
/// factors are given and the product does not round, row t is multiplied by times[t]. Only vectors
/// that contain at least one row are written. Their remaining lanes are 0.
template <VectorProduct Product, class Rows>
void pack_transposed(const Rows& x, std::int64_t rows, std::int64_t width, const float* times,
                     float* to) {
  const std::int64_t depth = words<Product>(width);
  for (std::int64_t t = 0; t < rows; t += lanes) {
    const Vec factor = times ? load(times + t) : Vec(1.0f);
    for (std::int64_t c = 0; c < depth; c += lanes) {
      FloatLanes square[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) square[i] = words_of<Product>(x, t + i, c).v;
      transpose(square);
      const auto put = [&](int i) {
        const Vec x_i(square[i]);
        store(to + (c + i) * panel + t, Product::rounds ? x_i : factor * x_i);
      };
      if (depth - c >= lanes) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i) put(i);
      } else {
        for (int i = 0; i < depth - c; ++i) put(i);
      }
    }
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
