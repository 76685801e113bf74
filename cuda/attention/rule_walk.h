#pragma once

#include <algorithm>

#include "cuda/attention/rules.h"
#include "cuda/attention/run.h"

/// Shared code of the kernels for attention by rules other than softmax. A block computes a tile of
/// products q . k as the softmax kernels do and stores it in shared memory. One thread per query
/// then processes its keys one after another, beginning with the nearest, and applies the rule's
/// formulas. The weights are read back into registers for the next products.
///
/// Heads wider than a slice are handled as in gradients.h. Sums over slices have the same order in
/// every kernel, so that a score has the same bits in all of them.
namespace longhand::cuda::walks {

// slice: columns per slice of a head. steps: keys per step if a block has queries, or queries per
// step if a block has keys.
constexpr int slice = 64, steps = 32;

struct RuleTask {
  ScoresView scores;
  HeadsView v = {}, y = {}, mean = {}, residue = {}, dy = {}, dq = {}, dk = {}, dv = {};
  float* log_sum = nullptr;
  const float* row_dots = nullptr;
  float *dtau = nullptr, *dpull = nullptr, *dshift = nullptr;
  bool add_tau = false, add_pull = false, add_shift = false;
  float* row_sums = nullptr;  // row sums of dS, [query rows, heads]; null if dshift is not required
  std::int32_t key_slices = 1, value_slices = 1;
  std::int64_t query_rows = 0;
  Pair<float>* walked = nullptr;  // `known` and `sum` of Walkers, [slices, query rows, heads]
  std::int32_t* progress = nullptr;
};

/// The state of one query while its keys are processed.
template <Rule rule>
struct Walker {
  float factor = 0, pull = 0, log_sum = 0, d = 0;
  int position = -1;
  bool there = false;
  // stick-breaking: remaining length of the stick; TRA: number of keys with a positive score;
  // entmax: sum of the squares of w (EntmaxRule)
  float known = rule == Rule::stick ? 1.0f : 0.0f;
  // stick-breaking: the part of D that belongs to the remaining keys; TRA: sum of weights in the
  // forward pass, dpull in the backward pass; entmax: sum of w
  float sum = 0;
  float level = 0;                // forward pass: TRA's largest logit so far, or entmax's threshold
  float raw = 0;                  // the sum of dS times q . k over the keys
  float all = 0;                  // the sum of dS over the keys
  float shift = 0;                // c at the query's position
  const float* shifts = nullptr;  // c of the segment's keys, with stride `heads`; may be null
  int number = 0;                 // entmax, forward pass: number of keys with a positive weight

  __device__ void start(const ScoresView& scores, const SegmentView& at, int query, int head) {
    there = query < at.queries;
    if (!there) {
      if (rule == Rule::stick) known = 0;
      return;
    }
    const std::int64_t row = at.query + query;
    position = at.offset() + query;
    factor = scores.scale * scores.tau_of(row, head) * unit_of(rule);
    if (scores.shift) {
      shifts = scores.shift + at.key * scores.heads + head;
      shift = shifts[std::int64_t{position} * scores.heads];
    }
    if (rule == Rule::tra) pull = scores.pull[row * scores.heads + head] * log2_of_e;
  }
  __device__ void start_back(const RuleTask& task, const SegmentView& at, int query, int head) {
    start(task.scores, at, query, head);
    if (!there) return;
    const std::int64_t entry = (at.query + query) * task.scores.heads + head;
    d = task.row_dots[entry];
    if (rule == Rule::stick) sum = d;
    if (rule != Rule::stick) log_sum = task.log_sum[entry];
  }
  __device__ bool sees(const ScoresView& scores, int key) const {
    return there && visible(scores, position, key) && (!strict(rule) || key < position);
  }
  /// The score of a key, computed from the product q . k. It has the same bits in every kernel.
  __device__ float score(const ScoresView& scores, float product, int key) const {
    if (!shifts) return product * factor;
    const float apart = shift - shifts[std::int64_t{key} * scores.heads];
    return fmaf(apart, unit_of(rule), product * factor);
  }
  __device__ bool spent() const { return rule == Rule::stick && known < rules::Stick::spent; }

  /// Replaces the products s[key * stride] of the keys begin .. begin + count - 1 by weights.
  /// Returns the factor by which the sums of earlier calls must be multiplied.
  __device__ float weigh(const ScoresView& scores, int begin, int count, float* s, int stride) {
    float top = level;
    for (int key = count - 1; key >= 0; --key) {
      float& x = s[key * stride];
      if constexpr (rule == Rule::stick) {
        x = sees(scores, begin + key) ? rules::Stick::weigh(score(scores, x, begin + key), known)
                                      : 0.0f;
      } else {
        const bool first = known == 0;
        x = sees(scores, begin + key) ? score(scores, x, begin + key) : 0.0f;
        x = rules::Tra::logit(x, pull, known);
        if (known > 0) top = first ? x : fmaxf(top, x);
      }
    }
    if constexpr (rule == Rule::stick) return 1;
    const float shrink = power_of_two(level - top);
    level = top;
    sum *= shrink;
    for (int key = 0; key < count; ++key) {
      float& x = s[key * stride];
      x = power_of_two(x - level);
      sum += x;
    }
    return shrink;
  }

  /// The next three functions are for entmax, whose scores are halved by score(). highest() raises
  /// `level` to the maximum of these scores. add_up() adds w and its square to `sum` and `known`.
  /// weigh_roots() replaces the products by w.
  __device__ void highest(const ScoresView& scores, int begin, int count, const float* s,
                          int stride) {
    for (int key = 0; key < count; ++key) {
      if (!sees(scores, begin + key)) continue;
      level = fmaxf(level, score(scores, s[key * stride], begin + key));
    }
  }
  __device__ void add_up(const ScoresView& scores, int begin, int count, const float* s,
                         int stride) {
    for (int key = 0; key < count; ++key) {
      if (!sees(scores, begin + key)) continue;
      const float x = score(scores, s[key * stride], begin + key);
      const float w = rules::Entmax::weight(x, level);
      sum += w;
      known += w * w;
      number += w > 0 ? 1 : 0;
    }
  }
  __device__ void weigh_roots(const ScoresView& scores, int begin, int count, float* s,
                              int stride) const {
    for (int key = 0; key < count; ++key) {
      float& x = s[key * stride];
      x = sees(scores, begin + key) ? rules::Entmax::weight(score(scores, x, begin + key), level)
                                    : 0.0f;
      if (number == 1 && x > 0) x = 1;  // its weight is exactly 1
    }
  }

  /// Replaces s by P and dp by dS. For stick-breaking, P is rounded as the products round it
  /// (rules::Stick::gradient explains why).
  template <class Product>
  __device__ void gradients(const ScoresView& scores, int begin, int count, float* s, float* dp,
                            int stride) {
    for (int key = count - 1; key >= 0; --key) {
      float &x = s[key * stride], &g = dp[key * stride];
      const float product = x;
      if (!sees(scores, begin + key)) {
        x = g = 0;
        continue;
      }
      const float s_ij = score(scores, x, begin + key);
      if constexpr (rule == Rule::stick) {
        // If the stick is spent, the remaining keys have almost no weight, and `sum` is only a
        // rounding error.
        if (spent()) sum = 0;
        const auto broken = rules::Stick::broken(s_ij);
        x = to_float(Product::element(rules::Stick::weigh(broken, known)));
        g = rules::Stick::gradient(broken.taken, x, g, sum);
      } else if constexpr (rule == Rule::entmax) {
        const float w = rules::Entmax::weight(s_ij, log_sum);
        x = w * w;
        g = w * (g - d);
      } else {
        const float logit = rules::Tra::logit(s_ij, pull, known);
        x = power_of_two(logit - log_sum * log2_of_e);
        g = rules::Tra::gradient(logit, log_sum, x, g, d);
        sum += g * known;
      }
      raw += g * product;
      all += g;
    }
  }
};

/// put_tile and get_tile copy a warp's 16 rows between registers and a tile. Entry (r, c) of the
/// tile is at r row_stride + c column_stride.
template <int m>
__device__ void put_tile(float* tile, int row_stride, int column_stride, const float (&x)[m][4]) {
  float* const to = tile + (16 * warp_index() + lane_row()) * row_stride;
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      to[8 * (e / 2) * row_stride + (8 * i + 2 * lane_column() + e % 2) * column_stride] = x[i][e];
    }
  }
}
template <int m>
__device__ void get_tile(const float* tile, int row_stride, int column_stride, float (&x)[m][4]) {
  const float* const from = tile + (16 * warp_index() + lane_row()) * row_stride;
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      x[i][e] =
          from[8 * (e / 2) * row_stride + (8 * i + 2 * lane_column() + e % 2) * column_stride];
    }
  }
}

template <class Product>
constexpr int tile_entries = tile_rows* Product::stride(slice);
template <class Product>
constexpr int step_entries = steps* Product::stride(slice);
constexpr int walk_stride = tile_rows + 1;  // stride of a key if a block has 64 queries
constexpr int wave_stride = steps + 1;      // stride of a key if a block has 64 keys
constexpr int walk_floats = steps * walk_stride, wave_floats = tile_rows * wave_stride;

template <class Product>
constexpr std::size_t forward_bytes =
    sizeof(typename Product::Element) *
    (tile_entries<Product> + 2 * step_entries<Product>)+sizeof(float) * walk_floats;
template <class Product>
constexpr std::size_t backward_bytes = sizeof(typename Product::Element) * 2 *
                                       (tile_entries<Product> + step_entries<Product>)+2 *
                                       sizeof(float) * std::max(walk_floats, wave_floats);

/// c = this warp's rows of `mine` times the rows of `others`, summed over all slices of the head.
/// bring_mine and bring_others load one slice at a time into these tiles of shared memory.
template <class Product, int m, class Mine, class Others>
__device__ void dots_of_slices(float (&c)[m][4], typename Product::Element* mine,
                               typename Product::Element* others, int parts, bool busy,
                               const Mine& bring_mine, const Others& bring_others) {
  clear(c);
  for (int part = 0; part < parts; ++part) {
    __syncthreads();
    if (parts > 1) bring_mine(part);
    bring_others(part);
    __syncthreads();
    if (busy) dots<Product, slice>(c, mine + 16 * warp_index() * Product::stride(slice), others);
  }
}

/// The queries of a block: first .. first + rows - 1 of a segment, at positions from `start` on.
/// own_queries() orders the blocks so that tiles with the most keys start first.
struct BlockQueries {
  SegmentView at;
  int first, rows, start;
};
__device__ __forceinline__ BlockQueries own_queries(const SegmentsView& segments) {
  const std::int64_t slot = std::int64_t{gridDim.x} - 1 - blockIdx.x;
  const Tile tile = tile_at(segments.query_begin, segments.count, tile_rows, slot);
  const SegmentView at = segments[tile.segment];
  return {at, tile.first, min(tile_rows, at.queries - tile.first), at.offset() + tile.first};
}

/// Loads a tile. Each thread returns when its own entries are loaded, so a barrier must follow.
template <class Product, int rows>
__device__ void fetch(typename Product::Element* tile, const HeadsView& x, std::int64_t row,
                      int count, int head, int part) {
  stage<Product, slice, rows>(tile, x, row, count, head, part * slice);
  commit_copies();
  wait_for_copies<0>();
  settle<Product, slice, rows>(tile, x);
}

template <Rule rule>
using Named = std::integral_constant<Rule, rule>;

/// attend_by_entmax() is the forward pass of entmax. entmax_dots() writes D of entmax to dots,
/// [rows, heads].
void attend_by_entmax(CudaBackend& backend, const Scores& scores, const RuleTask& task);
void entmax_dots(CudaBackend& backend, const Scores& scores, const RuleTask& task, float* dots);

/// Calls body(Product{}) with the product type of the math mode.
template <class Body>
void visit_product(const Scores& scores, Math math, Body&& body) {
  if (math == Math::exact) return body(ExactProduct{});
  if (math == Math::bf16 || scores.q.data.dtype() == DType::bf16) return body(Bf16Product{});
  body(Tf32Product{});
}
/// Calls body(Product{}, rule). TRA uses f32 products in every math mode.
template <class Body>
void visit_rule(const Scores& scores, Rule rule, Math math, Body&& body) {
  if (rule == Rule::tra) return body(ExactProduct{}, Named<Rule::tra>{});
  visit_product(scores, math, [&](auto product) {
    if (rule == Rule::stick) return body(product, Named<Rule::stick>{});
    return body(product, Named<Rule::entmax>{});
  });
}

}  // namespace longhand::cuda::walks
