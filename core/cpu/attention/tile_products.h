#pragma once

#include "core/cpu/attention/pack.h"
#include "core/cpu/attention/rows.h"
#include "core/cpu/attention/sight.h"
#include "core/cpu/gemm/tile_registers.h"
#include "core/cpu/halves.h"

/// The products of a panel of queries with a block of keys on tile registers. A block of 64 by 64
/// scores consists of four squares of 32 by 32, and each square consists of four tiles. Only
/// squares with a visible score are computed.
///
/// A tile product sums over 32 entries. A tile of the left operand has 16 rows of 32 entries. A
/// tile of the right operand has 16 rows, and each row contains a pair of entries for each of 16
/// columns. A pair of bf16 entries is one 32-bit word, as in products on vectors (Bf16 in
/// product.h). Most matrices have the same layout as in products on vectors.
///
/// The layout is different in products that sum over keys. Scores are stored as [key][query], so P
/// is the right operand of these products. The left operand, the values (or for dq the keys), is
/// stored as words [column][keys / 2], and the result is stored as [column][query].
///
/// Each operand is rounded to bf16 or split into a high and a low bf16 part. The product of the
/// split operands a and b is a_high b_high + a_high b_low + a_low b_high. The omitted term a_low
/// b_low is less than 2^-16 of the product.
namespace longhand::cpu::LONGHAND_ISA::attention {

inline constexpr int side = 16;  // number of rows, and of columns, of a tile of sums
// Number of rows, and of columns, of the squares of scores that are computed together. It is also
// the number of entries that one tile product sums over.
inline constexpr int square = 32;
// Number of words (pairs of bf16) that one tile product sums over.
inline constexpr std::int64_t granule = square / 2;

/// Products of bf16 pairs on tile registers. If `Parts` is 1, operands are rounded to bf16. If
/// `Parts` is 2, operands are split into a high and a low bf16 part.
template <class Registers_, int Parts>
struct Tiled {
  using Registers = Registers_;
  static constexpr int depth = 2, parts = Parts;
  static constexpr bool rounds = true, tiled = true;
  /// Distance, in words, from the high bf16 parts of a block of P or dS to its low bf16 parts.
  static constexpr std::int64_t apart = block * panel / depth;

  static void begin() { Registers().configure(); }
  static void end() { Registers().release(); }

  struct Words {
    Vec part[Parts];
  };
  [[gnu::always_inline]] static Words across(Vec a, Vec b) {
    Words w;
    w.part[0] = joined(a, b);
    if constexpr (Parts == 2) w.part[1] = joined(a - first_of(w.part[0]), b - second_of(w.part[0]));
    return w;
  }
  [[gnu::always_inline]] static Words neighbours(Vec lo, Vec hi) {
    Vec even, odd;
    split_pairs(lo, hi, even, odd);
    return across(even, odd);
  }
  [[gnu::always_inline]] static void put_across(float* to, Vec a, Vec b) {
    const Words w = across(a, b);
    for (int i = 0; i < Parts; ++i) store(to + i * apart, w.part[i]);
  }
  [[gnu::always_inline]] static void put_rows(float* a_to, Vec a, float* b_to, Vec b) {
    put_two(a_to, a, b_to, b);
    if constexpr (Parts == 2) {
      const Vec high = joined(a, b);
      put_two(a_to + apart, a - first_of(high), b_to + apart, b - second_of(high));
    }
  }

 private:
  static Vec first_of(Vec words) {
    return from_bits(reinterpret_cast<IntLanes>(reinterpret_cast<WordLanes>(words.v) << 16));
  }
  static Vec second_of(Vec words) {
    return from_bits(
        reinterpret_cast<IntLanes>(reinterpret_cast<WordLanes>(words.v) & 0xffff0000u));
  }
#if defined(LONGHAND_HAS_BF16_PAIRS)
  static __m512i halves(Vec a, Vec b) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.v, a.v));
  }
  static Vec joined(Vec a, Vec b) {
    const __m512i order = reinterpret_cast<__m512i>(
        WordLanes{0x00100000, 0x00110001, 0x00120002, 0x00130003, 0x00140004, 0x00150005,
                  0x00160006, 0x00170007, 0x00180008, 0x00190009, 0x001a000a, 0x001b000b,
                  0x001c000c, 0x001d000d, 0x001e000e, 0x001f000f});
    return Vec(reinterpret_cast<FloatLanes>(_mm512_permutexvar_epi16(order, halves(a, b))));
  }
  static void put_two(float* a_to, Vec a, float* b_to, Vec b) {
    const __m512i both = halves(a, b);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(a_to), _mm512_castsi512_si256(both));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(b_to), _mm512_extracti64x4_epi64(both, 1));
  }
#else
  static Vec joined(Vec a, Vec b) {
    return Vec(reinterpret_cast<FloatLanes>(pairs_of(rounded(a), rounded(b))));
  }
  static void put_two(float* a_to, Vec a, float* b_to, Vec b) {
    put_halves(a_to, a);
    put_halves(b_to, b);
  }
#endif
};

/// Returns the SIMD vector of packed words that begins at word c of row t. If operands are split
/// into high and low bf16 parts, it returns one vector for each part. If they are not split, a row
/// of bf16 numbers already consists of packed words and is loaded directly.
template <class Product, class Rows>
[[gnu::always_inline]] inline auto words_along(const Rows& x, std::int64_t t, std::int64_t c) {
  if constexpr (Product::parts == 1 && std::is_same_v<Rows, Source<bf16>>) {
    if (t < x.rows && 2 * (c + lanes) <= x.width) {
      return typename Product::Words{{Vec(load_raw<FloatLanes>(x.x.row(t) + 2 * c))}};
    }
  }
  return Product::neighbours(x.at(t, 2 * c), x.at(t, 2 * c + lanes));
}

/// Packs a left operand of score_tiles(): word c of row t is stored at to[t][part][c], where part 0
/// contains the high and part 1 the low bf16 parts of the entries.
template <TiledProduct Product, class Rows>
void pack_left(const Rows& x, std::int64_t rows, std::int64_t width, float* to,
               std::int64_t stride) {
  const std::int64_t depth = words<Product>(width);
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t c = 0; c < depth; c += lanes) {
      const auto w = words_along<Product>(x, t, c);
      for (int i = 0; i < Product::parts; ++i) store(to + t * stride + i * depth + c, w.part[i]);
    }
  }
}

/// Packs a right operand of mix_queries(): for even t, the word to[part][t / 2][c] contains column
/// c of the rows t and t + 1, where part 0 contains the high and part 1 the low bf16 parts of the
/// entries. The number of rows is rounded up to a multiple of `square`.
template <TiledProduct Product, class Rows>
void pack_right(const Rows& x, std::int64_t rows, std::int64_t width, float* to,
                std::int64_t stride) {
  for (std::int64_t t = 0; t < round_up(rows, square); t += 2) {
    for (std::int64_t c = 0; c < round_up(width, side); c += lanes) {
      const auto w = Product::across(x.at(t, c), x.at(t + 1, c));
      for (int i = 0; i < Product::parts; ++i) {
        store(to + (i * panel + t) / 2 * stride + c, w.part[i]);
      }
    }
  }
}

/// Packs the transpose of x: word c of row t is stored at to[part][c][t], where part 0 contains the
/// high and part 1 the low bf16 parts of the entries. The unnamed argument, a factor for each row,
/// is not used, because the factors multiply the products instead.
template <TiledProduct Product, class Rows>
void pack_transposed(const Rows& x, std::int64_t rows, std::int64_t width, const float*,
                     float* to) {
  const std::int64_t depth = words<Product>(width);
  for (std::int64_t t = 0; t < rows; t += lanes) {
    for (std::int64_t c = 0; c < depth; c += lanes) {
      FloatLanes turned[Product::parts][lanes];
#pragma GCC unroll 16
      for (int l = 0; l < lanes; ++l) {
        const auto w = words_along<Product>(x, t + l, c);
        for (int i = 0; i < Product::parts; ++i) turned[i][l] = w.part[i].v;
      }
      for (int i = 0; i < Product::parts; ++i) {
        transpose(turned[i]);
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) {
          store(to + (i * depth + c + l) * panel + t, Vec(turned[i][l]));
        }
      }
    }
  }
}

/// Packs the keys (or values) x for products that sum over keys, one block of 64 keys after the
/// other. For even r, the word to[c][part][r / 2] of a block contains column c of its keys r and
/// r + 1, where part 0 contains the high and part 1 the low bf16 parts of the entries. Entries
/// after the last key are 0.
template <TiledProduct Product, class Rows>
void pack_key_blocks(const Rows& x, std::int64_t rows, std::int64_t width, float* to) {
  constexpr std::int64_t half = block / 2, row = Product::parts * half;
  for (std::int64_t j = 0; j < rows; j += block, to += key_block<Product>(width)) {
    for (std::int64_t r = 0; r < least(block, round_up(rows - j, square)); r += 2 * lanes) {
      for (std::int64_t c = 0; c < round_up(width, side); c += lanes) {
        FloatLanes turned[Product::parts][lanes];
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) {
          const auto w = Product::across(x.at(j + r + 2 * l, c), x.at(j + r + 2 * l + 1, c));
          for (int i = 0; i < Product::parts; ++i) turned[i][l] = w.part[i].v;
        }
        for (int i = 0; i < Product::parts; ++i) {
          transpose(turned[i]);
#pragma GCC unroll 16
          for (int l = 0; l < lanes; ++l) {
            store(to + (c + l) * row + i * half + r / 2, Vec(turned[i][l]));
          }
        }
      }
    }
  }
}

/// An operand of a product on tile registers. Its entries are split into a high and a low bf16
/// part, or have only a high part. All distances are in words: `row` to the next row of a tile,
/// `granule` to the next tile along the summed dimension, and `part` from the high parts to the low
/// parts of the entries.
struct TileOperand {
  const float* at;
  std::int64_t row, granule, part;
};

template <class Product, int m, int n>
struct TileProduct {
  typename Product::Registers tiles;

  template <bool from_memory>
  void sums(float* c, std::int64_t stride) {
    sum<0, 0, from_memory>(c, stride);
    sum<0, 1, from_memory>(c, stride);
    sum<1, 0, from_memory>(c, stride);
    sum<1, 1, from_memory>(c, stride);
  }
  template <int i, int j, bool from_memory>
  void sum(float* c, std::int64_t stride) {
    if constexpr (i < m && j < n) {
      if constexpr (from_memory) {
        tiles.template load<2 * i + j>(c + i * side * stride + j * side, 4 * stride);
      } else {
        tiles.template zero<2 * i + j>();
      }
    }
  }
  void left(const float* at, std::int64_t row) {
    tiles.template load<4>(at, 4 * row);
    if constexpr (m == 2) tiles.template load<5>(at + side * row, 4 * row);
  }
  void right(const float* at, std::int64_t row) {
    tiles.template load<6>(at, 4 * row);
    if constexpr (n == 2) tiles.template load<7>(at + side, 4 * row);
  }
  void multiply() {
    tiles.template multiply_add<0, 4, 6>();
    if constexpr (n == 2) tiles.template multiply_add<1, 4, 7>();
    if constexpr (m == 2) tiles.template multiply_add<2, 5, 6>();
    if constexpr (m == 2 && n == 2) tiles.template multiply_add<3, 5, 7>();
  }
  void put(float* c, std::int64_t stride) {
    tiles.template store<0>(c, 4 * stride);
    if constexpr (n == 2) tiles.template store<1>(c + side, 4 * stride);
    if constexpr (m == 2) tiles.template store<2>(c + side * stride, 4 * stride);
    if constexpr (m == 2 && n == 2) tiles.template store<3>(c + side * stride + side, 4 * stride);
  }
};

/// Computes the matrix product c = a b, or c += a b if `add` is true, for m by n tiles of c.
/// `granules` is the number of tiles along the summed dimension.
template <class Product, int m, int n>
[[gnu::noinline]] void multiply_tiles(const TileOperand& a, const TileOperand& b,
                                      std::int64_t granules, float* c, std::int64_t stride,
                                      bool add) {
  TileProduct<Product, m, n> product;
  if (add) {
    product.template sums<true>(c, stride);
  } else {
    product.template sums<false>(c, stride);
  }
  const float *left = a.at, *right = b.at;
  for (std::int64_t g = 0; g < granules; ++g, left += a.granule, right += b.granule) {
    product.left(left, a.row);
    if constexpr (Product::parts == 2) {
      product.right(right + b.part, b.row);
      product.multiply();  // adds (high part of a) times (low part of b)
    }
    product.right(right, b.row);
    product.multiply();
    if constexpr (Product::parts == 2) {
      product.left(left + a.part, a.row);
      product.multiply();  // adds (low part of a) times (high part of b)
    }
  }
  product.put(c, stride);
}

/// Calls multiply_tiles() for a part of the result c with at most 32 rows and 32 columns.
template <class Product>
void multiply_square(const TileOperand& a, const TileOperand& b, std::int64_t granules, float* c,
                     std::int64_t stride, bool add, std::int64_t rows, std::int64_t columns) {
  if (rows > side) {
    if (columns > side) return multiply_tiles<Product, 2, 2>(a, b, granules, c, stride, add);
    return multiply_tiles<Product, 2, 1>(a, b, granules, c, stride, add);
  }
  if (columns > side) return multiply_tiles<Product, 1, 2>(a, b, granules, c, stride, add);
  multiply_tiles<Product, 1, 1>(a, b, granules, c, stride, add);
}

/// True if the square of 32 by 32 scores that begins at key r and query t contains a visible score.
inline bool in_sight(const Sight& sight, std::int64_t r, std::int64_t t) {
  if (t >= sight.queries) return false;
  const Range keys = sight.keys_of(t, least(square, sight.queries - t));
  return keys.begin < r + square && keys.end > r;
}

/// Sums over more than this many words (pairs of bf16 entries) are computed in pieces, so that both
/// operands stay in the first-level cache.
inline constexpr std::int64_t tile_depth_piece = 64;

/// Computes s[r][t] = sum_c left[r][c] right[c][t] for the key r and the query t, in all squares of
/// 32 by 32 scores that contain a visible score.
template <TiledProduct Product>
void score_tiles(const float* left, std::int64_t left_stride, const float* right,
                 std::int64_t depth, const Sight& sight, float* s) {
  for (std::int64_t k = 0; k < depth; k += tile_depth_piece) {
    const std::int64_t granules = least(tile_depth_piece, depth - k) / granule;
    for (std::int64_t r = 0; r < sight.keys; r += square) {
      for (std::int64_t t = 0; t < sight.queries; t += square) {
        if (!in_sight(sight, r, t)) continue;
        multiply_square<Product>({left + r * left_stride + k, left_stride, granule, depth},
                                 {right + k * panel + t, panel, granule * panel, depth * panel},
                                 granules, s + r * panel + t, panel, k > 0, sight.keys - r,
                                 sight.queries - t);
      }
    }
  }
}

/// Adds a weighted sum over the keys r: out[c][t] += sum_r p(r, t) values(r, c) for column c and
/// query t. The weights p are packed: for even r, the word [r / 2][t] contains the entries of the
/// keys r and r + 1.
template <TiledProduct Product>
void mix_keys(const float* p, const float* values, std::int64_t, const Sight& sight, float* out,
              std::int64_t width) {
  constexpr std::int64_t half = block / 2, row = Product::parts * half;
  for (std::int64_t t = 0; t < sight.queries; t += square) {
    const std::int64_t first = in_sight(sight, 0, t) ? 0 : 1;
    const std::int64_t granules = (in_sight(sight, square, t) ? 2 : 1) - first;
    if (granules == 0) continue;
    for (std::int64_t c = 0; c < width; c += square) {
      multiply_square<Product>(
          {values + c * row + first * granule, row, granule, half},
          {p + first * granule * panel + t, panel, granule * panel, Product::apart}, granules,
          out + c * panel + t, panel, true, width - c, sight.queries - t);
    }
  }
}

/// Adds a weighted sum over the queries t: out[r][c] += sum_t p(r, t) rows(t, c) for key r and
/// column c. The weights p are packed: for even t, the word [r][t / 2] contains the entries of the
/// queries t and t + 1.
template <TiledProduct Product>
void mix_queries(const float* p, const float* rows, std::int64_t stride, const Sight& sight,
                 float* out, std::int64_t width) {
  constexpr std::int64_t row = panel / 2;
  for (std::int64_t r = 0; r < sight.keys; r += square) {
    const std::int64_t first = in_sight(sight, r, 0) ? 0 : 1;
    const std::int64_t granules = (in_sight(sight, r, square) ? 2 : 1) - first;
    if (granules == 0) continue;
    for (std::int64_t c = 0; c < width; c += square) {
      multiply_square<Product>(
          {p + r * row + first * granule, row, granule, Product::apart},
          {rows + first * granule * stride + c, stride, granule * stride, panel / 2 * stride},
          granules, out + r * stride + c, stride, true, sight.keys - r, width - c);
    }
  }
}

/// Sets words of a packed block of P or dS to 0: the first `width` words of each of the first
/// `rows` rows, in the high and in the low bf16 parts. Rows are `row` words apart.
template <class Product>
void clear_words(float* words, std::int64_t rows, std::int64_t row, std::int64_t width) {
  for (std::int64_t i = 0; i < Product::parts; ++i) {
    for (std::int64_t r = 0; r < rows; ++r) clear(words + i * Product::apart + r * row, width);
  }
}

/// Called before the packed words of P or dS of a block are written. Words without a visible score
/// will not be written, but tile products read them. Unless every score of the block is visible,
/// this function sets all words that tile products read to 0. The word for key r and query t is at
/// [r / 2][t] in `across`, and at [r][t / 2] in each matrix of the list `rows`.
template <TiledProduct Product, class... Words>
void clear_unseen(const Sight& sight, float* across, Words*... rows) {
  const Range by_all = sight.keys_of_all(0, panel);
  if (by_all.begin == 0 && by_all.end == block && sight.queries == panel) return;
  clear_words<Product>(across, round_up(sight.keys, square) / 2, panel,
                       round_up(sight.queries, side));
  (clear_words<Product>(rows, round_up(sight.keys, side), panel / 2,
                        round_up(sight.queries, square) / 2),
   ...);
}

template <TiledProduct Product>
void clear_query_sums(float* sums, std::int64_t queries, std::int64_t width) {
  for (std::int64_t c = 0; c < round_up(width, side); ++c) {
    clear(sums + c * panel, round_up(queries, side));
  }
}

/// For each query i, tile products add up one vector per key j, such as P_ij v_j. Entry c of the
/// sum of query i is stored at sums[c * panel + i]. This function transposes the sums into `space`
/// and returns them with one row per query.
template <TiledProduct Product>
HeadRows<const float> query_rows(const float* sums, std::int64_t queries, std::int64_t width,
                                 float* space) {
  const std::int64_t stride = packed_width(width);
  for (std::int64_t t = 0; t < queries; t += lanes) {
    for (std::int64_t c = 0; c < width; c += lanes) {
      FloatLanes turned[lanes];
#pragma GCC unroll 16
      for (int l = 0; l < lanes; ++l) turned[l] = load(sums + (c + l) * panel + t).v;
      transpose(turned);
#pragma GCC unroll 16
      for (int l = 0; l < lanes; ++l) store(space + (t + l) * stride + c, Vec(turned[l]));
    }
  }
  return {space, stride};
}

template <TiledProduct Product>
void scale_queries(float* sums, std::int64_t queries, std::int64_t width, const float* factors) {
  for (std::int64_t t = 0; t < queries; t += lanes) {
    const Vec factor = load(factors + t);
    if (!any(factor != Vec(1.0f))) continue;
    for (std::int64_t c = 0; c < width; ++c) {
      float* const at = sums + c * panel + t;
      store(at, factor * load(at));
    }
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
