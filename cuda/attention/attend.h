#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "cuda/attention/tickets.h"
#include "cuda/attention/wide.h"

/// The forward pass of softmax attention, ChaCAL and DeltaFormer. A thread block has 64 or 128
/// queries of one head of one segment and processes their keys in blocks of 64. For each query i it
/// keeps a level b, which is near the maximum score so far, and the sums
///   l = sum_j 2^(s_ij - b);  o = sum_j 2^(s_ij - b) v_j.
/// The scores s_ij are multiplied by log2 e, so that exponentials are powers of 2. If the maximum m
/// of a block of keys is more than `slack` above b, l and o are first multiplied by 2^(b - m), and
/// m becomes the level. Then the terms of the block of keys are added. No power exceeds 2^slack,
/// and levels seldom change. At the end y_i = o / l and log_sum = (b + log2 l) ln 2.
///
/// ChaCAL and DeltaFormer are causal, and their thread blocks have 64 queries. The last block of
/// keys has the same positions as these queries. For ChaCAL with gamma = g, the values of earlier
/// blocks of keys are U_j = (1 - g) v_j + g y_j, because their outputs y_j are finished. The
/// outputs y_j at the positions of the last block are not known yet, so its values are
/// (1 - g) v_j. Forward substitution then adds the terms with these outputs:
///   y_i = o / l + g sum_j P_ij y_j, over the keys j < i of the last block.
///
/// DeltaFormer's queries see only the keys before their own. Its outputs are y_j = v_j + g_j z_j,
/// where g_j is the gain of row j, and z_j is the weighted mean of the outputs before row j. The
/// values of earlier blocks of keys are the outputs y_j, and those of the last block are v_j.
/// Forward substitution then adds the terms with g_j z_j of the last block:
///   z_i = o / l + sum_j P_ij g_j z_j, over the keys j < i of the last block.
///
/// A sink, which is a score without a value, is treated like a key before all others: its score is
/// the first level, and l begins at 1.
///
/// The columns of a head are processed in a slice of 32, 64 or 128. The heads of softmax attention
/// that are wider than 128 are computed as described in wide.h. In ChaCAL and DeltaFormer, a wider
/// head has several slices of 128: its scores are summed over all slices of q and k, and each
/// thread block computes one slice of y.
///
/// Keys and values are loaded during computation. If shared memory has room for two blocks of keys
/// and their values (`pairs`), the next block is loaded while the current one is computed.
/// Otherwise the values of a block are loaded while its scores are computed, and the keys of the
/// next block are loaded after that.
namespace longhand::cuda {

struct AttentionTask {
  ScoresView scores;
  HeadsView v = {}, y = {}, earlier = {};
  const float* sink = nullptr;  // one sink (a score without a value) per head, or null
  float* log_sum = nullptr;
  std::int32_t key_slices = 1, value_slices = 1;
  const float* gamma = nullptr;
  std::int32_t gamma_step = 0;
  const float* gain = nullptr;  // DeltaFormer only: the gains, [query rows, heads]
  // DeltaFormer only: receives, for each query, the weighted mean of the outputs of earlier rows;
  // may be empty
  HeadsView read = {};
  std::int32_t* progress = nullptr;
  // Number of parts into which the keys of each query are divided (parts.cu). If there are several
  // parts, y receives, for each part, the f32 sum of the weighted values. This sum is not yet
  // divided by the sum of the weights.
  std::int32_t key_parts = 1;
  std::int64_t query_rows = 0;
  // For each part of the keys: the level that is subtracted from scores, and the sum of the
  // weights. [key parts, query rows, heads]
  Pair<float>* stats = nullptr;
};

/// Variants of the forward kernel. whole: a thread block processes all keys that its queries see.
/// part: a thread block processes one part of these keys, and parts.cu combines the results of the
/// parts. wide: the same as part, for heads wider than 128 columns (wide.h). If the keys are not
/// divided, the only part has all keys. chacal, deltaformer: a thread block processes all keys that
/// its queries see. The output of a query also depends on the outputs of earlier queries of the
/// same thread block, so the block ends with a forward substitution, which computes the outputs of
/// its queries one after another.
enum class Walk { whole, part, wide, chacal, deltaformer };

inline constexpr int key_rows = 64;  // number of keys that a thread block processes at a time
inline constexpr float slack = 8;

template <class Product, int slice>
constexpr int tile_size = key_rows* Product::stride(slice);

/// Number of pairs of tiles (one of keys, one of values) that are buffered in the shared memory of
/// a thread block with 64 * bands queries.
template <class Product, int slice, int bands>
constexpr int pairs = sizeof(typename Product::Element) * tile_size<Product, slice>*(bands + 4) <=
                              72 << 10
                          ? 2
                          : 1;

template <class Product, int slice, int bands>
constexpr std::size_t forward_bytes = sizeof(typename Product::Element) *
                                      tile_size<Product, slice>*(bands +
                                                                 2 * pairs<Product, slice, bands>);

/// A thread block that computes one tile of queries of one head. Its steps are member functions, in
/// the order in which run() calls them.
///
/// Small arrays are stored in the padding of tiles, because some tiles fill all 99 KiB that a block
/// may have on devices of compute capability 8.6, 8.9 and 12. The padding of row r of q contains
/// four floats: the factor by which the products q . k of query r are multiplied, the shift
/// (Scores::decay) of query r, and the shifts of key r of two blocks of keys, the current one and
/// the previous one. While a warp processes the current block, other warps may still read the
/// shifts of the previous block.
template <class Product, int slice, int bands, Walk walk, bool shifted>
struct AttentionBlock {
  using Element = typename Product::Element;
  static constexpr bool deltaformer = walk == Walk::deltaformer;
  // true if the values of later tiles of keys depend on y of earlier tiles
  static constexpr bool chain = walk == Walk::chacal || deltaformer;
  static constexpr bool wide = walk == Walk::wide;
  // true if the keys of a query may be divided into parts
  static constexpr bool may_divide = wide || walk == Walk::part;
  static constexpr int threads = wide ? wide_threads : attention_threads;
  static constexpr int block_rows = wide ? wide_rows : bands * tile_rows;
  // numbers of columns of the result and of keys for each warp, in groups of 8
  static constexpr int n = wide ? WideTiles<Product>::slices * WideTiles<Product>::n : slice / 8;
  static constexpr int m = key_rows / 8;
  static constexpr int size = tile_size<Product, slice>;
  // true if these template arguments are used only for heads that are at most one slice wide
  static constexpr bool one_slice = !chain || slice < 128;
  // true if a block of keys and its values are loaded together
  static constexpr bool both = !chain && pairs<Product, slice, bands> == 2;
  static constexpr float infinity = std::numeric_limits<float>::infinity();

  // Types of the arrays that a thread keeps in registers. The arrays are local variables of run().
  // If they were members of AttentionBlock, a kernel that computes one tile after another would
  // need more registers.
  struct Sums {
    // For each query of this thread. out: the weighted sum of the values. level: the number that is
    // subtracted from the scores. sum: the sum of the weights.
    float out[bands][n][4], level[bands][2], sum[bands][2];
  };
  using Weights = float[bands][m][4];
  using Factors = float[bands][2];

  const AttentionTask& task;
  const ScoresView& scores;
  const Tile tile;
  // part: index of this block's part of the columns of y (ChaCAL and DeltaFormer: a slice; wide
  // heads: wide_columns; otherwise 0); key_part: index of its part of the keys (parts.cu)
  const int head, part, key_part;
  const SegmentView at;
  // In shared memory. q: the queries. ring: one or two pairs of tiles, each with a block of keys
  // and their values. For wide heads, q and ring are the two tiles of keys in WideTiles.
  Element *const q, *const ring;
  const int rows;  // number of queries in the tile
  // The tile's queries have the positions start .. stop - 1. Without a causal mask, queries are
  // treated as if they came after the last key, so `start` is the number of keys.
  const int start, stop;
  // first_row: row of the tile's first query in the tensor of queries; first_key: row of the
  // segment's first key in the tensor of keys
  const int first_row, first_key;
  const int key_head, first_value;
  const int warp_row;                     // index of the warp's first row in the tile
  const int first_of_warp, last_of_warp;  // positions of the warp's first and last query
  const bool busy;                        // false if the warp has no query
  const float g;                          // ChaCAL's gamma for this head; otherwise 0
  int first_block, until;  // this thread block processes the keys first_block .. until - 1

  __device__ __forceinline__ AttentionBlock(const AttentionTask& of, const Tile& of_tile,
                                            int of_head, int of_part, int of_key_part)
      : task(of),
        scores(of.scores),
        tile(of_tile),
        head(of_head),
        part(of_part),
        key_part(of_key_part),
        at(scores.segments[tile.segment]),
        q(shared_memory<Element>()),
        ring(q + bands * size),
        rows(min(block_rows, at.queries - tile.first)),
        start(min(scores.offset(at) + tile.first, at.keys)),
        stop(start + rows),
        first_row(static_cast<int>(at.query) + tile.first),
        first_key(static_cast<int>(at.key)),
        key_head(head / scores.group),
        first_value(part * slice),
        warp_row(16 * bands * (wide ? wide_band() : warp_index())),
        first_of_warp(start + warp_row),
        last_of_warp(min(first_of_warp + 16 * bands, stop) - 1),
        busy(warp_row < rows),
        g(walk == Walk::chacal ? task.gamma[head * task.gamma_step] : 0.0f) {}

  __device__ __forceinline__ void run() {
    if constexpr (wide) return run_wide();
    store_query_numbers();
    Sums sums;
    begin_sums(sums);
    Weights p;  // the scores of a block of keys, later replaced by their weights
    choose_keys();
    load_first();
    int end = 0, now = 0;  // now: offset of the current block of keys in `ring`
    int turn = 0;
    for (int begin = first_block; begin < until; begin = end, turn = 1 - turn) {
      end = end_of(begin);
      if (shifted) store_key_shifts(begin, end, turn);
      // ChaCAL and DeltaFormer load the values only after the weights have been computed. The
      // values then overwrite the keys in shared memory.
      Element *const k = ring + now, *const v = chain ? k : k + size;
      now = both ? 2 * size - now : now;
      receive_keys(k, v, ring + now, begin, end);
      // True if a query of this warp sees a key of the current block of keys.
      const bool sees = busy && begin <= last_of_warp && scores.first_key(first_of_warp) < end;
      multiply(p, k, begin, sees);
      if (!chain && !both) {
        wait_for_copies<0>();
        settle<Product, slice, key_rows>(v, task.v);
        __syncthreads();
        bring(k, scores.k, end, 0);
        commit_copies();
      }
      if (sees) weigh(p, sums, begin, end, turn);
      if constexpr (chain) load_chain_values(v, begin, end);
      if (sees) Product::template mix<slice>(sums.out, p, v);
    }
    finish(sums, p);
  }
  /// The same as run(), for wide heads (wide.h).
  __device__ __forceinline__ void run_wide() {
    store_query_numbers();
    Sums sums;
    begin_sums(sums);
    choose_keys();
    using Tiles = WideTiles<Product>;
    Tiles tiles;
    const int first_slice = part * Tiles::slices;
    const HeadRows queries{scores.q, first_row, rows, head};
    const auto rows_of = [&](const HeadsView& x, int begin) {
      return HeadRows{x, first_key + begin, end_of(begin) - begin, key_head};
    };
    if (first_block < until) tiles.bring(queries, rows_of(scores.k, first_block), 0);
    commit_copies();
    int turn = 0;
    for (int begin = first_block, end; begin < until; begin = end, turn = 1 - turn) {
      end = end_of(begin);
      if (shifted) store_key_shifts(begin, end, turn);
      const HeadRows keys = rows_of(scores.k, begin), values = rows_of(task.v, begin);
      const bool sees = busy && begin <= last_of_warp && scores.first_key(first_of_warp) < end;
      typename Tiles::Products products;
      clear(products);
      tiles.multiply(products, queries, keys, task.key_slices, sees,
                     [&] { tiles.bring(values, first_slice); });
      Weights p;
      tiles.exchange(p, products);
      if (sees) weigh(p, sums, begin, end, turn);
      tiles.mix(sums.out, p, values, first_slice, task.value_slices, sees, [&] {
        if (end < until) tiles.bring(queries, rows_of(scores.k, end), 0);
      });
    }
    finish(sums, Weights{});
  }

  __device__ __forceinline__ float* of_row(int r) const { return padding<Product, slice>(q, r); }
  /// The tile's first row, the head and the part of the columns. They are needed only at the end,
  /// so they are kept in shared memory to save registers.
  struct Kept {
    int row, head, part;
  };
  __device__ __forceinline__ Kept* kept() const {
    return reinterpret_cast<Kept*>(padding<Product, slice>(ring, 0));
  }

  __device__ __forceinline__ void store_query_numbers() const {
    if (threadIdx.x == 0) *kept() = {first_row, head, part};
    for (int r = static_cast<int>(threadIdx.x); r < block_rows; r += threads) {
      const float tau = scores.tau_of(first_row + r, head, r < rows);
      const float factor = scores.scale * tau * log2_of_e;
      // A masked score is -infinity, which becomes NaN if it is multiplied by 0. A factor of 0 is
      // therefore replaced by 2^-100.
      of_row(r)[0] = fabsf(factor) < 0x1p-100f ? 0x1p-100f : factor;
      if (shifted) of_row(r)[1] = r < rows ? scores.shift_of(first_key + start + r, head) : 0.0f;
    }
  }

  __device__ __forceinline__ void begin_sums(Sums& sums) const {
#pragma unroll
    for (int t = 0; t < bands; ++t) {
      clear(sums.out[t]);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        sums.level[t][i] = -infinity;
        sums.sum[t][i] = 0;
        if (in_parts() || !task.sink) continue;
        sums.level[t][i] = task.sink[head] * log2_of_e;
        // The sink's score is the first level, so its own term in the sum is 2^0 = 1. Four lanes
        // share a row, and only one of them counts this term.
        sums.sum[t][i] = lane_column() == 0 ? 1.0f : 0.0f;
      }
    }
  }

  /// True if other blocks process other parts of the keys.
  __device__ __forceinline__ bool in_parts() const {
    return may_divide && (!wide || task.key_parts > 1);
  }

  /// Chooses the keys of this thread block. Blocks of keys begin at the multiples of 64 before the
  /// tile's first position `start`, at `start`, and every 64 keys after `start`. If keys are
  /// divided into parts, or if heads are wide, blocks begin at multiples of 64 only.
  __device__ __forceinline__ void choose_keys() {
    first_block = scores.first_key(start) / key_rows * key_rows;
    until = min(stop, at.keys);
    if constexpr (may_divide) {
      const int blocks = (until - first_block + key_rows - 1) / key_rows;
      const int length = (blocks + task.key_parts - 1) / task.key_parts * key_rows;
      first_block = min(first_block + key_part * length, until);
      until = min(first_block + length, until);
    }
  }
  __device__ __forceinline__ int end_of(int begin) const {
    return min(begin + key_rows, !may_divide && begin < start ? start : until);
  }

  /// Starts to copy rows of x to shared memory, where x is the keys or the values. The rows are
  /// those of the block of keys that begins at key `begin`. Copies nothing if `begin` is beyond the
  /// last key of this thread block.
  __device__ __forceinline__ void bring(Element* to, const HeadsView& x, int begin,
                                        int column) const {
    if (begin < until) {
      stage<Product, slice, key_rows>(to, x, first_key + begin, end_of(begin) - begin, key_head,
                                      column);
    }
  }
  __device__ __forceinline__ void bring_queries(int column) const {
    stage<Product, slice, block_rows>(q, scores.q, first_row, rows, head, column);
  }

  __device__ __forceinline__ void load_first() const {
    if (one_slice || task.key_slices == 1) bring_queries(0);
    if (!chain) bring(ring, scores.k, first_block, 0);
    if (both) bring(ring + size, task.v, first_block, first_value);
    commit_copies();
    wait_for_copies<0>();
    if (one_slice || task.key_slices == 1) settle<Product, slice, block_rows>(q, scores.q);
  }

  __device__ __forceinline__ void store_key_shifts(int begin, int end, int turn) const {
    const int r = static_cast<int>(threadIdx.x), key = begin + r;
    if (r >= key_rows) return;
    of_row(r)[2 + turn] = key < end ? scores.shift_of(std::int64_t{first_key} + key, head) : 0.0f;
  }

  /// Waits until the current block of keys is in shared memory. For ChaCAL and DeltaFormer, the
  /// function first starts to copy these keys, and it starts no other copies. For softmax
  /// attention, the copying of these keys was started earlier. If `both` is set, the function also
  /// waits for the values of these keys, and then starts to copy the next block of keys and its
  /// values. If `both` is not set, it then starts to copy the values of these keys.
  __device__ __forceinline__ void receive_keys(Element* k, Element* v, Element* next, int begin,
                                               int end) const {
    if (chain) {
      __syncthreads();
      bring(k, scores.k, begin, 0);
      commit_copies();
    }
    wait_for_copies<0>();
    settle<Product, slice, key_rows>(k, scores.k);
    if (both) settle<Product, slice, key_rows>(v, task.v);
    __syncthreads();
    if (both) {
      bring(next, scores.k, end, 0);
      bring(next + size, task.v, end, first_value);
    } else if (!chain) {
      bring(v, task.v, begin, first_value);
    }
    commit_copies();
  }

  /// Computes p = q . k for a block of keys.
  __device__ __forceinline__ void multiply(Weights& p, Element* k, int begin, bool sees) const {
#pragma unroll
    for (int t = 0; t < bands; ++t) clear(p[t]);
    if constexpr (!one_slice) {
      if (task.key_slices > 1) return multiply_slices(p, k, begin, sees);
    }
    if (sees) Product::template dots<slice>(p, own_queries(), k);
  }
  /// Adds q . k to p for heads that are wider than a slice. Slices of columns are added one after
  /// another. The first slice of the keys is already in k.
  __device__ __forceinline__ void multiply_slices(Weights& p, Element* k, int begin,
                                                  bool sees) const {
    for (int s = 0; s < task.key_slices; ++s) {
      __syncthreads();
      bring_queries(s * slice);
      if (s > 0) bring(k, scores.k, begin, s * slice);
      commit_copies();
      wait_for_copies<0>();
      settle<Product, slice, block_rows>(q, scores.q);
      if (s > 0) settle<Product, slice, key_rows>(k, scores.k);
      __syncthreads();
      if (sees) Product::template dots<slice>(p, own_queries(), k);
    }
  }
  __device__ __forceinline__ const Element* own_queries() const {
    return q + warp_row * Product::stride(slice);
  }

  /// Replaces the products q . k in p by the weights 2^(score - level), where the level of a row is
  /// near its maximum score so far. Adds the weights to sums.sum.
  __device__ __forceinline__ void weigh(Weights& p, Sums& sums, int begin, int end,
                                        int turn) const {
    const int lane = lane_register(), row = warp_row + lane / 4;
    Factors factor;
#pragma unroll
    for (int t = 0; t < bands; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) factor[t][i] = of_row(row + 16 * t + 8 * i)[0];
    }
    if constexpr (shifted) {
      add_shifts(p, factor, row, lane, turn);
    } else {
      make_positive(p, factor);
    }
    if (end > first_of_warp || end - begin < key_rows || scores.window > 0) {
      mask(p, begin, end, row, lane);
    }
    raise_levels(p, factor, sums);
#pragma unroll
    for (int t = 0; t < bands; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float base = sums.level[t][i] == -infinity ? 0.0f : sums.level[t][i];
#pragma unroll
        for (int c = 0; c < m; ++c) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            float& s = p[t][c][2 * i + j];
            s = power_of_two(s * factor[t][i] - base);
            sums.sum[t][i] += s;
          }
        }
      }
    }
  }

  /// Replaces the products q . k in p by scores: multiplies them by `factor`, and adds the
  /// difference of the shifts (Scores::decay) of query and key. Then sets `factor` to 1.
  __device__ __forceinline__ void add_shifts(Weights& p, Factors& factor, int row, int lane,
                                             int turn) const {
#pragma unroll
    for (int t = 0; t < bands; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float of_query = of_row(row + 16 * t + 8 * i)[1];
#pragma unroll
        for (int c = 0; c < m; ++c) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            float& s = p[t][c][2 * i + j];
            const float of_key = of_row(8 * c + 2 * (lane % 4) + j)[2 + turn];
            s = s * factor[t][i] + (of_query - of_key) * log2_of_e;
          }
        }
        factor[t][i] = 1;
      }
    }
  }

  /// The score of a key is the row's `factor` times the product q . k in p. In rows with a negative
  /// factor, negates the factor and the products. The largest product of a row then belongs to its
  /// largest score.
  __device__ __forceinline__ static void make_positive(Weights& p, Factors& factor) {
#pragma unroll
    for (int t = 0; t < bands; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (!(factor[t][i] < 0)) continue;
        factor[t][i] = -factor[t][i];
#pragma unroll
        for (int c = 0; c < m; ++c) {
          p[t][c][2 * i] = -p[t][c][2 * i];
          p[t][c][2 * i + 1] = -p[t][c][2 * i + 1];
        }
      }
    }
  }

  /// Sets the scores in p to -infinity for keys that the query of the row does not see.
  /// DeltaFormer's queries do not see the key at their own position.
  __device__ __forceinline__ void mask(Weights& p, int begin, int end, int row, int lane) const {
    const int column = begin + 2 * (lane % 4);
#pragma unroll
    for (int t = 0; t < bands; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int position = start + row + 16 * t + 8 * i;
        const int first = scores.first_key(position) - column,
                  last = min(position - (deltaformer ? 1 : 0), end - 1) - column;
#pragma unroll
        for (int c = 0; c < m; ++c) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            float& s = p[t][c][2 * i + j];
            s = 8 * c + j >= first && 8 * c + j <= last ? s : -infinity;
          }
        }
      }
    }
  }

  /// Limits the exponents of the weights. The level of a row is subtracted from all its scores. If
  /// the largest score of a row in p is more than `slack` above the level, this score becomes the
  /// new level. The sums of the row are then multiplied by 2^(old level - new level).
  __device__ __forceinline__ static void raise_levels(const Weights& p, const Factors& factor,
                                                      Sums& sums) {
    float top[bands][2];
    bool higher = false;
#pragma unroll
    for (int t = 0; t < bands; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float highest = fmaxf(p[t][0][2 * i], p[t][0][2 * i + 1]);
#pragma unroll
        for (int c = 1; c < m; ++c) {
          highest = fmaxf(highest, fmaxf(p[t][c][2 * i], p[t][c][2 * i + 1]));
        }
        top[t][i] = row_max(highest) * factor[t][i];
        higher = higher || top[t][i] > sums.level[t][i] + slack;
      }
    }
    if (!__any_sync(full_warp, higher)) return;
#pragma unroll
    for (int t = 0; t < bands; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (!(top[t][i] > sums.level[t][i] + slack)) continue;
        const float shrink = power_of_two(sums.level[t][i] - top[t][i]);
        sums.level[t][i] = top[t][i];
        sums.sum[t][i] *= shrink;
#pragma unroll
        for (int c = 0; c < n; ++c) {
          sums.out[t][c][2 * i] *= shrink;
          sums.out[t][c][2 * i + 1] *= shrink;
        }
      }
    }
  }

  /// Loads the values of a block of keys in a chain. For keys before this block's queries, they are
  /// (1 - g) v + g y in ChaCAL, with g = gamma, and y in DeltaFormer. The function first waits
  /// until the tile that contains the last of these keys is finished, so that their y is known. For
  /// keys at the positions of this block's queries, the values are (1 - g) v in ChaCAL and v in
  /// DeltaFormer.
  __device__ __forceinline__ void load_chain_values(Element* v, int begin, int end) const {
    const bool own = begin == start;
    std::int32_t* const done =
        task.progress + 1 +
        ((scores.segments.query_begin[tile.segment] / tile_rows + tile.segment) *
             std::int64_t{scores.heads} +
         head) *
            task.value_slices +
        part;
    const std::int64_t step = std::int64_t{scores.heads} * task.value_slices;
    if (!own && end > at.offset()) {
      wait_for(done + (end - 1 - at.offset()) / tile_rows * step);
    } else {
      __syncthreads();
    }
    stage_computed<Product, slice>(
        v, tile_rows, end - begin, first_value, [&](float(&u)[8], int r, int column) {
          const int j = begin + r;
          float y[8] = {};
          if (!deltaformer || own) load_eight(u, task.v, at.key + j, key_head, column);
          if (!own && j < at.offset()) {
            load_eight(y, task.earlier, at.key + j, head, column);
          } else if (!own) {
            load_eight(y, task.y, at.query + j - at.offset(), head, column);
          }
          if constexpr (deltaformer) {
            if (own) return;
#pragma unroll
            for (int i = 0; i < 8; ++i) u[i] = y[i];
          } else {
            add_outputs(u, y, g);
          }
        });
    __syncthreads();
  }

  /// Stores y and log_sum. If the block processed only a part of the keys, stores its unfinished
  /// sums and levels instead.
  __device__ __forceinline__ void finish(const Sums& sums, const Weights& p) const {
    // Thread 0 has written *kept() to shared memory. If this block's part has no keys, no barrier
    // has followed yet, so one is required before other threads read *kept().
    if constexpr (may_divide) __syncthreads();
    const int lane = lane_register(), row = warp_row + lane / 4;
    const Kept of = *kept();
    Factors inverse;
#pragma unroll
    for (int t = 0; t < bands; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int r = row + 16 * t + 8 * i;
        const float total = row_sum(sums.sum[t][i]);
        // The first query of a DeltaFormer segment sees no key.
        const bool none = deltaformer && total == 0;
        inverse[t][i] = in_parts() ? 1.0f : none ? 0.0f : 1.0f / total;
        if (of.part > 0 || lane % 4 > 0 || start + r >= stop) continue;
        if (wide && wide_quarter() > 0) continue;
        if (in_parts()) {
          task.stats[(key_part * task.query_rows + of.row + r) * scores.heads + of.head] = {
              sums.level[t][i], total};
        } else if (task.log_sum) {
          task.log_sum[std::int64_t{of.row + r} * scores.heads + of.head] =
              none ? 0.0f : (sums.level[t][i] + log2f(total)) * ln_of_2;
        }
      }
    }
    if constexpr (chain) {
      solve_own_tile(of, row, sums, p, inverse);
    } else {
      HeadsView y = task.y;
      if (in_parts()) {
        if (first_block >= until) return;
        y.at = static_cast<float*>(y.at) + key_part * task.query_rows * y.columns;
      }
      if constexpr (wide) {
        WideTiles<Product>().store(y, of.row, rows, of.head, of.part, sums.out, inverse);
      } else if (busy) {
        store_rows<Product>(q + warp_row * Product::stride(slice), y, of.row + warp_row,
                            stop - first_of_warp, of.head, of.part * slice, sums.out, inverse);
      }
    }
  }

  /// Completes y of ChaCAL, or z of DeltaFormer: adds the terms gamma P_ij y_j, or P_ij gain_j z_j,
  /// of the keys j at the positions of this tile's own queries, by forward substitution. Then
  /// stores y.
  __device__ __forceinline__ void solve_own_tile(const Kept& of, int row, const Sums& sums,
                                                 const Weights& p, const Factors& inverse) const {
    float* const solved = shared_memory<float>();
    float* const links = solved + tile_rows * sums_stride<slice>;
    __syncthreads();
    if (busy) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int r = row + 8 * i, c0 = 2 * lane_column() + j;
#pragma unroll
          for (int c = 0; c < n; ++c) {
            solved[r * sums_stride<slice> + 8 * c + c0] = sums.out[0][c][2 * i + j] * inverse[0][i];
          }
#pragma unroll
          for (int c = 0; c < m; ++c) {
            const float factor = deltaformer ? gain_of(of, 8 * c + c0) : g;
            links[(8 * c + c0) * links_stride + r] = factor * (p[0][c][2 * i + j] * inverse[0][i]);
          }
        }
      }
    }
    __syncthreads();
    substitute<slice>(solved, links, rows);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < rows * (slice / 2); i += attention_threads) {
      const int r = i / (slice / 2), c = i % (slice / 2) * 2, column = of.part * slice + c;
      Pair<float> y = {solved[r * sums_stride<slice> + c], solved[r * sums_stride<slice> + c + 1]};
      if constexpr (deltaformer) {
        if (task.read) store_pair(task.read, of.row + r, of.head, column, y.first, y.second);
        const float gain = gain_of(of, r);
        y = {value_of(of, r, column) + gain * y.first,
             value_of(of, r, column + 1) + gain * y.second};
      }
      store_pair(task.y, of.row + r, of.head, column, y.first, y.second);
    }
  }
  /// DeltaFormer's gain of row r of this tile, or 0 if the tile has no such row.
  __device__ __forceinline__ float gain_of(const Kept& of, int r) const {
    return r < rows ? task.gain[std::int64_t{of.row + r} * scores.heads + of.head] : 0.0f;
  }
  /// The value of row r of this tile, or 0 beyond the head's width.
  __device__ __forceinline__ float value_of(const Kept& of, int r, int column) const {
    return column < task.v.width ? load_one(task.v, first_key + start + r, of.head, column) : 0.0f;
  }
};

template <class Product, int slice, int bands, Walk walk, bool shifted>
__device__ __forceinline__ void attend(const AttentionTask& task, const Tile& tile, int head,
                                       int part = 0, int key_part = 0) {
  AttentionBlock<Product, slice, bands, walk, shifted>(task, tile, head, part, key_part).run();
}

/// Creates a task with the members that softmax attention, ChaCAL and DeltaFormer share. `sink` and
/// `log_denominator` may be empty.
template <class Op>
AttentionTask attention_task(const Op& op, const Tensor& sink, const Tensor& log_denominator) {
  return {.scores = view(op.scores),
          .v = view(op.v),
          .y = view(op.y),
          .sink = pointer(sink),
          .log_sum = mutable_pointer(log_denominator)};
}

/// Chooses the type of products for the math mode, and the slice width for the heads, and calls
/// body(Product{}, Slice{}, shifted, task). `shifted` is true if the scores have shifts
/// (Scores::decay).
template <class Body>
void visit_forward(Math math, const Scores& scores, AttentionTask task, Body&& body) {
  const std::int64_t width = scores.q.width, v_width = task.v.width;
  visit_product(math, scores.q.data.dtype(), std::max(width, v_width),
                [&](auto product, auto size) {
                  task.key_slices = slices(width, decltype(size)::value);
                  task.value_slices = slices(v_width, decltype(size)::value);
                  if (scores.decay) {
                    body(product, size, std::true_type{}, task);
                  } else {
                    body(product, size, std::false_type{}, task);
                  }
                });
}

/// Computes softmax attention with wide heads (wide.h). The caller has set the members of `task`
/// except key_slices and value_slices.
void attend_wide(CudaBackend& backend, const Scores& scores, AttentionTask task);

}  // namespace longhand::cuda
