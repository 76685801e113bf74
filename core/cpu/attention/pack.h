#pragma once

#include <cstdint>
#include <utility>

#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/product.h"
#include "core/cpu/simd.h"

/// Packs rows of queries, keys and values into scratch memory, in the layouts that the matrix
/// products read.
namespace longhand::cpu::LONGHAND_ISA::attention {

inline constexpr int panel = static_cast<int>(attention_panel);
inline constexpr std::int64_t block = panel;  // number of keys that are processed together

constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t most(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
constexpr std::int64_t between(std::int64_t x, std::int64_t low, std::int64_t high) {
  return least(most(x, low), high);
}
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// Number of 32-bit words for `entries` packed entries. For products on tile registers, it is
/// rounded up to whole tiles.
template <class Product>
constexpr std::int64_t words(std::int64_t entries) {
  const std::int64_t needed = (entries + Product::depth - 1) / Product::depth;
  return Product::tiled ? round_up(needed, 16) : needed;
}

/// The number of words from one packed row to the next, for rows of `width` words. It is a multiple
/// of 16. For wide heads it is an odd number of 256-byte pieces, so that 64 rows spread over the
/// sets of the cache.
constexpr std::int64_t packed_width(std::int64_t width) {
  const std::int64_t whole = round_up(width, 16);
  if (whole <= 64) return whole;
  const std::int64_t pieces = (whole + 63) / 64;
  return (pieces + 1 - pieces % 2) * 64;
}

/// Number of 32-bit words in a block of 64 keys or values with `width` columns, packed for products
/// that sum over keys.
template <class Product>
constexpr std::int64_t key_block(std::int64_t width) {
  const std::int64_t row = Product::tiled ? round_up(width, 16) : packed_width(width);
  return Product::parts * (block / Product::depth) * row;
}

/// Reads the rows of a head as SIMD vectors of f32. Entries beyond the last row or column are 0.
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

/// The vectors that later rows of ChaCAL read instead of v_j: (1 - gamma) v_j + gamma y_j. gamma is
/// a number between 0 and 1 for each head.
template <class T>
struct ChacalSource {
  Source<T> v, y;
  float gamma;

  [[gnu::always_inline]] Vec at(std::int64_t t, std::int64_t c) const {
    return fma(Vec(gamma), y.at(t, c), Vec(1.0f - gamma) * v.at(t, c));
  }
};

/// The rows of x with all entries rounded to bf16.
template <class T>
struct RoundedSource {
  Source<T> x;

  [[gnu::always_inline]] Vec at(std::int64_t t, std::int64_t c) const {
    return round_to(static_cast<const bf16*>(nullptr), x.at(t, c));
  }
};

/// Rows of x, where row t is multiplied by times[t].
template <class T>
struct ScaledSource {
  Source<T> x;
  const float* times;

  [[gnu::always_inline]] Vec at(std::int64_t t, std::int64_t c) const {
    return Vec(times[t]) * x.at(t, c);
  }
};

/// One step of a transpose: for each i in which the bit `half` is set, exchanges lane i of `a` with
/// lane i - half of `b`.
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

/// Returns the SIMD vector of packed words that begins at word c of row t.
template <class Product, class Rows>
[[gnu::always_inline]] inline Vec words_of(const Rows& x, std::int64_t t, std::int64_t c) {
  if constexpr (Product::depth == 1) {
    return Product::rounded(x.at(t, c));
  } else {
    return Product::neighbours(x.at(t, 2 * c), x.at(t, 2 * c + lanes));
  }
}

/// Packs rows as the left operand of score_tiles, which sums products over the entries of a row. A
/// word contains Product::depth entries. Word c of row t is stored as to[t][c].
template <VectorProduct Product, class Rows>
void pack_left(const Rows& x, std::int64_t rows, std::int64_t width, float* to,
               std::int64_t stride) {
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t c = 0; c < words<Product>(width); c += lanes) {
      store(to + t * stride + c, words_of<Product>(x, t, c));
    }
  }
}

/// Packs rows as the right operand of mix_queries or mix_keys, whose products sum over the rows.
/// The word to[t / depth][c] contains column c of `depth` consecutive rows.
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

/// Packs the transpose of x: to[c][t] is word c of row t of x. A row of `to` has `panel` words. Row
/// t of x is multiplied by times[t] unless `times` is null. If the product rounds operands to bf16,
/// `times` is ignored: the caller multiplies the results of the product instead. Rows of `to` are
/// written in whole SIMD vectors, so up to lanes - 1 words after the last row of x become 0. The
/// remaining words of a row are not written.
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
