#pragma once

#include "core/cpu/attention/exp2.h"
#include "core/cpu/attention/rows.h"
#include "core/cpu/attention/sight.h"
#include "core/cpu/attention/tile.h"

/// The matrix products of a panel of 64 queries with a block of 64 keys. Scores are stored
/// transposed, [key][query], so that maxima, sums and masks of neighbouring queries are vector
/// operations.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// Sums over more than this many words (32 bits: one f32 or two bf16 entries) are computed in
/// pieces, so that the part of the right operand in use stays in the first-level cache.
inline constexpr std::int64_t depth_piece = 128;

/// Computes s[r][t] = sum_c left[r][c] right[c][t] for keys r and queries t. left[r][c] and
/// right[c][t] are words, each with one f32 entry or two bf16 entries. The product of two words
/// (a_0, a_1) and (b_0, b_1) is a_0 b_0 + a_1 b_1. `depth` is the number of words in a sum, and
/// `left_stride` is the number of words from one row of `left` to the next. Tiles of s in which no
/// query sees a key are skipped.
template <VectorProduct Product>
void score_tiles(const float* left, std::int64_t left_stride, const float* right,
                 std::int64_t depth, const Sight& sight, float* s) {
  const int last = static_cast<int>((sight.queries + lanes - 1) / lanes);
  constexpr int group = register_rows == 8 ? 2 : 3;
  for (std::int64_t k = 0; k < depth; k += depth_piece) {
    const std::int64_t piece = least(depth_piece, depth - k);
    for (int n = 0; n < last; n += group) {
      for (std::int64_t r = 0; r < sight.keys; r += tile_rows) {
        const Range seen = sight.vectors_of(r, tile_rows);
        const int begin = seen.begin > n ? seen.begin : n;
        const int end = static_cast<int>(least(n + group, least(seen.end, last)));
        if (begin >= end) continue;
        row_tile<Product>({left + r * left_stride + k, left_stride, 1},
                          right + k * panel + begin * lanes, panel, piece,
                          s + r * panel + begin * lanes, panel, end - begin, k > 0);
      }
    }
  }
}

/// The range of packed words that contain a given range of entries.
template <class Product>
Range words_around(Range entries) {
  return {entries.begin / Product::depth, (entries.end + Product::depth - 1) / Product::depth};
}

/// Adds a weighted sum over the keys r to the row of each query t:
/// out[t] += sum_r p(r, t) values[r]; the weights p are packed: the word [r / depth][t] contains
/// the entries of `depth` consecutive keys.
template <VectorProduct Product>
void mix_keys(const float* p, const float* values, std::int64_t stride, const Sight& sight,
              float* out, std::int64_t width) {
  const int vectors = static_cast<int>((width + lanes - 1) / lanes);
  for (std::int64_t t = 0; t < sight.queries; t += tile_rows) {
    const Range seen = sight.keys_of(t, tile_rows);
    if (seen.empty()) continue;
    const Range k = words_around<Product>(seen);
    row_tile<Product>({p + k.begin * panel + t, 1, panel}, values + k.begin * stride, stride,
                      k.end - k.begin, out + t * stride, stride, vectors, true);
  }
}

/// Adds a weighted sum over the queries t to the row of each key r:
/// out[r] += sum_t p(r, t) rows[t]; the weights p are packed: the word [r][t / depth] contains the
/// entries of `depth` consecutive queries.
template <VectorProduct Product>
void mix_queries(const float* p, const float* rows, std::int64_t stride, const Sight& sight,
                 float* out, std::int64_t width) {
  constexpr std::int64_t row = panel / Product::depth;
  const int vectors = static_cast<int>((width + lanes - 1) / lanes);
  for (std::int64_t r = 0; r < sight.keys; r += tile_rows) {
    const Range seen = sight.queries_of(r, tile_rows);
    if (seen.empty()) continue;
    const Range k = words_around<Product>(seen);
    row_tile<Product>({p + r * row + k.begin, row, 1}, rows + k.begin * stride, stride,
                      k.end - k.begin, out + r * stride, stride, vectors, true);
  }
}

/// Called before packed words of P or dS are written. Products on tile registers also read words
/// that are not written, so their version of this function clears these words. Products on vectors
/// read only words that are written, so this version does nothing.
template <VectorProduct Product, class... Words>
void clear_unseen(const Sight&, Words*...) {}

/// The next four functions handle the matrix `out` in which mix_keys accumulates the weighted sums
/// of a panel of queries. query_sums returns the number of floats in the matrix. clear_query_sums
/// sets the matrix to 0. query_rows returns the matrix with one row per query. scale_queries
/// multiplies the row of each query by a factor.
template <class Product>
constexpr std::int64_t query_sums(std::int64_t queries, std::int64_t width) {
  return Product::tiled ? round_up(width, 16) * panel
                        : round_up(queries, tile_rows) * packed_width(width);
}
template <VectorProduct Product>
void clear_query_sums(float* sums, std::int64_t queries, std::int64_t width) {
  clear(sums, query_sums<Product>(queries, width));
}
template <VectorProduct Product>
HeadRows<const float> query_rows(const float* sums, std::int64_t, std::int64_t width, float*) {
  return {sums, packed_width(width)};
}
template <VectorProduct Product>
void scale_queries(float* sums, std::int64_t queries, std::int64_t width, const float* factors) {
  const std::int64_t stride = packed_width(width);
  for (std::int64_t t = 0; t < queries; ++t) {
    const Vec factor(factors[t]);
    for (std::int64_t c = 0; c < width; c += lanes) {
      store(sums + t * stride + c, factor * load(sums + t * stride + c));
    }
  }
}

/// True if the factor of the scores multiplies the dot products q . k and not the queries. TRA
/// requires this: if the terms of a dot product cancel, their sum must be exactly 0. Terms that
/// were each multiplied by a factor and rounded would not cancel exactly.
template <class Product, class Formula>
inline constexpr bool scaled_late = Product::rounds || Formula::exact_scores;

/// Returns the scores of one key with a vector of queries. `product`, their dot products, is
/// multiplied by `times` unless the queries were already multiplied by this factor. If `shifted` is
/// true, the shift of the query minus the shift of the key (Scores::decay) is added.
template <class Product, class Formula, bool shifted>
[[gnu::always_inline]] inline Vec score_of(Vec product, Vec times, Vec shift,
                                           const float* key_shift) {
  const Vec x = scaled_late<Product, Formula> ? times * product : product;
  return shifted ? fma(Vec(Formula::unit), shift - Vec(*key_shift), x) : x;
}

/// Copies one number for each query of a panel: to[t] = x(row + t) for t < rows. All other entries
/// of `to` become `otherwise`. If x is null, all entries become `otherwise`.
inline void gather(HeadRows<const float> x, std::int64_t row, std::int64_t rows, float otherwise,
                   float* to) {
  for (int t = 0; t < panel; t += lanes) store(to + t, Vec(otherwise));
  if (!x) return;
  for (std::int64_t t = 0; t < rows; ++t) to[t] = *x.row(row + t);
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
