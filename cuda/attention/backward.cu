#include <algorithm>
#include <limits>

#include "cuda/attention/gradients.h"

/// Backward without atomics: one pass for the queries' gradients, one for the keys' and values',
/// each block the owner of 64 rows of what it sums. Both make P again from log_sum,
///   P_ij = 2^(s_ij - log_sum_i log2 e),  dP_ij = dy_i . v_j,  dS_ij = P_ij (dP_ij - D_i)
/// with D_i = dy_i . y_i from a pass before them. In a chain dP_ii is W_i . (1 - g) v_i, which is
/// W_i . U_i less g D_i.
///
/// Heads wider than a slice: P and dP sum over the slices; a block has one slice of the gradients,
/// whose operands it takes last and so has in shared memory when it needs them.
namespace longhand::cuda {
namespace {

template <class Product, int slice>
constexpr std::size_t tiles_bytes(int steps) {
  return sizeof(typename Product::Element) * Product::stride(slice) *
         static_cast<std::size_t>(2 * tile_rows + steps * step_rows<Product, slice>);
}
/// Whether two steps leave room for three blocks on a multiprocessor: one comes during the other.
template <class Product, int slice>
constexpr bool ahead = tiles_bytes<Product, slice>(4) <= 72 << 10;
template <class Product, int slice>
constexpr std::size_t gradient_bytes = tiles_bytes<Product, slice>(ahead<Product, slice> ? 4 : 2);

/// v, or in a chain U of query head `head`, for the keys first, first + 1, ... of a segment.
template <class Product, int slice, int rows>
__device__ __forceinline__ void stage_values(typename Product::Element* tile,
                                             const GradientTask& task, const SegmentView& at,
                                             int first, int count, int head, int column) {
  const int key_head = head / task.scores.group;
  if (task.gamma) {
    stage_chain<Product, slice>(
        tile, rows, task.v, at.key + first, count, key_head, column,
        task.gamma[head * task.gamma_step],
        [&](float(&y)[8], int r, int c) { load_eight(y, task.y, at.query + first + r, head, c); });
  } else {
    stage<Product, slice, rows>(tile, task.v, at.key + first, count, key_head, column);
  }
}
template <class Product, int slice, int rows>
__device__ __forceinline__ void settle_values(typename Product::Element* tile,
                                              const GradientTask& task) {
  if (!task.gamma) settle<Product, slice, rows>(tile, task.v);
}

/// dq_i = tau_i r_i with r_i = scale sum_j dS_ij k_j, and this tile's part of
/// dbeta = sum_i ln n_i q_i . r_i
template <class Product, int slice>
__global__ void __launch_bounds__(attention_threads, slice < 128 ? 3 : 2)
    query_gradients(GradientTask task) {
  using Element = typename Product::Element;
  constexpr int step = step_rows<Product, slice>, n = slice / 8, m = step / 8;
  constexpr int stride = Product::stride(slice);
  __shared__ float sums[32];
  Element* const q = shared_memory<Element>();
  Element* const dy = q + tile_rows * stride;
  Element* const ring = dy + tile_rows * stride;

  const ScoresView& scores = task.scores;
  const int head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const int key_head = head / scores.group;
  const Tile tile =
      tile_at(scores.segments.query_begin, scores.segments.count, tile_rows, blockIdx.x);
  const SegmentView at = scores.segments[tile.segment];
  float* const dbeta =
      task.dbeta
          ? task.dbeta + (std::int64_t{blockIdx.x} * scores.heads + head) * task.key_slices + part
          : nullptr;
  if (tile.first >= at.queries) {
    if (dbeta && threadIdx.x == 0) *dbeta = 0;
    return;
  }
  const int rows = min(tile_rows, at.queries - tile.first);
  const int start = at.offset() + tile.first;
  const std::int64_t first_row = at.query + tile.first;
  const int warp = warp_index(), row = 16 * warp + lane_row();
  const bool busy = 16 * warp < rows;
  const float g = task.gamma ? task.gamma[head * task.gamma_step] : 0.0f;

  float dq[1][n][4], factor[2], log_sum[2], d[2];
  clear(dq[0]);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = row + 8 * i;
    const std::int64_t at_row = (first_row + r) * scores.heads + head;
    factor[i] = scores.scale * scores.tau(start + r, at.keys) * log2_of_e;
    log_sum[i] = r < rows ? task.log_sum[at_row] * log2_of_e : 0.0f;
    d[i] = r < rows ? task.row_dots[at_row] : 0.0f;
  }
  const int first_key = scores.first_key(start) / step * step, stop = start + rows;
  const int parts = max(task.key_slices, task.value_slices);
  const bool single = slice < 128 || parts == 1;
  const auto bring = [&](Element* k, int begin, int key_part, int value_part) {
    const int count = min(step, stop - begin);
    if (key_part < task.key_slices) {
      stage<Product, slice, step>(k, scores.k, at.key + begin, count, key_head, key_part * slice);
    }
    if (value_part < task.value_slices) {
      stage_values<Product, slice, step>(k + step * stride, task, at, begin, count, head,
                                         value_part * slice);
    }
  };
  const auto bring_queries = [&](int column) {
    stage<Product, slice, tile_rows>(q, scores.q, first_row, rows, head, column);
  };
  const auto bring_dy = [&](int column) {
    stage<Product, slice, tile_rows>(dy, task.dy, first_row, rows, head, column);
  };
  if (task.key_slices == 1) bring_queries(0);
  if (task.value_slices == 1) bring_dy(0);
  if (single) bring(ring, first_key, 0, 0);
  commit_copies();
  wait_for_copies<0>();
  if (task.key_slices == 1) settle<Product, slice, tile_rows>(q, scores.q);
  if (task.value_slices == 1) settle<Product, slice, tile_rows>(dy, task.dy);

  const int own = 16 * warp * stride;
  int now = 0;  // where in the ring this step's tiles lie
  for (int begin = first_key; begin < stop; begin += step) {
    Element *const k = ring + now, *const v = k + step * stride;
    now = ahead<Product, slice> ? 2 * step * stride - now : now;
    Element* const next = ring + now;
    float s[m][4], dp[m][4];
    clear(s);
    clear(dp);
    if (single) {
      wait_for_copies<0>();
      settle<Product, slice, step>(k, scores.k);
      settle_values<Product, slice, step>(v, task);
      __syncthreads();
      if (ahead<Product, slice> && begin + step < stop) bring(next, begin + step, 0, 0);
      commit_copies();
      if (busy) {
        dots<Product, slice>(s, q + own, k);
        dots<Product, slice>(dp, dy + own, v);
      }
    } else {
      for (int i = 0; i < parts; ++i) {
        const int key_part = i < task.key_slices ? (part + 1 + i) % task.key_slices : i;
        __syncthreads();
        if (i < task.key_slices && task.key_slices > 1) bring_queries(key_part * slice);
        if (i < task.value_slices && task.value_slices > 1) bring_dy(i * slice);
        bring(k, begin, key_part, i);
        commit_copies();
        wait_for_copies<0>();
        if (i < task.key_slices) {
          if (task.key_slices > 1) settle<Product, slice, tile_rows>(q, scores.q);
          settle<Product, slice, step>(k, scores.k);
        }
        if (i < task.value_slices) {
          if (task.value_slices > 1) settle<Product, slice, tile_rows>(dy, task.dy);
          settle_values<Product, slice, step>(v, task);
        }
        __syncthreads();
        if (!busy) continue;
        if (i < task.key_slices) dots<Product, slice>(s, q + own, k);
        if (i < task.value_slices) dots<Product, slice>(dp, dy + own, v);
      }
    }

    if (busy) {
      const bool masked = begin + step > start || scores.window > 0;
#pragma unroll
      for (int c = 0; c < m; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float p = power_of_two(s[c][e] * factor[e / 2] - log_sum[e / 2]);
          const float ds = p * (dp[c][e] - d[e / 2]);
          dp[c][e] = p;
          s[c][e] = ds;
        }
      }
      if (masked) {
        const int column = begin + 2 * lane_column();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int position = start + row + 8 * i - column;
          const int first = scores.first_key(start + row + 8 * i) - column,
                    last = min(position, stop - 1 - column);
#pragma unroll
          for (int c = 0; c < m; ++c) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
              const int key = 8 * c + j;
              float& ds = s[c][2 * i + j];
              if (key == position) ds -= dp[c][2 * i + j] * g * d[i];
              ds = key >= first && key <= last ? ds : 0.0f;
            }
          }
        }
      }
      mix<Product>(dq[0], s, k);
    }
    if (single && !ahead<Product, slice> && begin + step < stop) {
      __syncthreads();
      bring(k, begin + step, 0, 0);
      commit_copies();
    }
  }

  float beta_sum = 0, taus[1][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = row + 8 * i;
    taus[0][i] = scores.scale * scores.tau(start + r, at.keys);
    if (r >= rows || !dbeta) continue;
    float row_total = 0;
#pragma unroll
    for (int c = 0; c < n; ++c) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int column = part * slice + 8 * c + 2 * lane_column() + j;
        if (column >= scores.q.width) continue;
        row_total += load_one(scores.q, first_row + r, head, column) * dq[0][c][2 * i + j];
      }
    }
    beta_sum += scores.log_n(start + r, at.keys) * scores.scale * row_total;
  }
  if (task.dq && busy) {
    store_rows<Product>(q + own, task.dq, first_row + 16 * warp, rows - 16 * warp, head,
                        part * slice, dq, taus);
  }
  if (dbeta) {
    beta_sum = block_sum(beta_sum, sums);
    if (threadIdx.x == 0) *dbeta = beta_sum;
  }
}

/// What a pass over the keys knows of a query.
struct alignas(16) QueryFacts {
  float factor, log_sum, tau, dot;
};

/// dk_j = scale sum_i tau_i dS_ij q_i,  dv_j = sum_i P_ij dy_i (in a chain times 1 - g), over the
/// query heads that read key head blockIdx.y. Scores lie transposed: a row is a key.
template <class Product, int slice>
__global__ void __launch_bounds__(attention_threads, 2) key_gradients(GradientTask task) {
  using Element = typename Product::Element;
  constexpr int step = step_rows<Product, slice>, n = slice / 8, m = step / 8;
  constexpr int stride = Product::stride(slice);
  __shared__ QueryFacts facts[2][step];
  Element* const k = shared_memory<Element>();
  Element* const v = k + tile_rows * stride;
  Element* const ring = v + tile_rows * stride;

  const ScoresView& scores = task.scores;
  const int key_head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const Tile tile =
      tile_at(scores.segments.key_begin, scores.segments.count, tile_rows, blockIdx.x);
  const SegmentView at = scores.segments[tile.segment];
  if (tile.first >= at.keys) return;
  const int rows = min(tile_rows, at.keys - tile.first);
  const int warp = warp_index(), row = 16 * warp + lane_row();
  const bool busy = 16 * warp < rows;

  // The queries that see a key of this tile, of each head in turn.
  const int first_query = max(0, tile.first - at.offset()) / step * step;
  int last_query = at.queries;
  if (scores.window > 0) {
    last_query = static_cast<int>(
        min(std::int64_t{last_query}, tile.first + rows - 1 + scores.window - at.offset()));
  }
  const int first_head = key_head * scores.group;
  const int last_head = first_query < last_query ? first_head + scores.group : first_head;
  const int parts = max(task.key_slices, task.value_slices);
  const bool single = slice < 128 || parts == 1;

  const auto bring_keys = [&](int column) {
    stage<Product, slice, tile_rows>(k, scores.k, at.key + tile.first, rows, key_head, column);
  };
  const auto bring_values = [&](int head, int column) {
    stage_values<Product, slice, tile_rows>(v, task, at, tile.first, rows, head, column);
  };
  const auto bring = [&](Element* q, int head, int begin, int key_part, int value_part) {
    const int count = min(step, at.queries - begin);
    if (key_part < task.key_slices) {
      stage<Product, slice, step>(q, scores.q, at.query + begin, count, head, key_part * slice);
    }
    if (value_part < task.value_slices) {
      stage<Product, slice, step>(q + step * stride, task.dy, at.query + begin, count, head,
                                  value_part * slice);
    }
  };
  const auto facts_of = [&](int head, int begin) {
    const int r = static_cast<int>(threadIdx.x);
    if (r >= min(step, at.queries - begin) || head >= last_head) return QueryFacts{};
    const std::int64_t at_row = (at.query + begin + r) * scores.heads + head;
    const float tau = scores.tau(at.offset() + begin + r, at.keys);
    return QueryFacts{scores.scale * tau * log2_of_e, task.log_sum[at_row] * log2_of_e, tau,
                      task.row_dots[at_row]};
  };

  float dk[1][n][4], dv[1][n][4];
  clear(dk[0]);
  clear(dv[0]);
  if (task.key_slices == 1) bring_keys(0);
  if (task.value_slices == 1 && !task.gamma) bring_values(first_head, 0);
  if (single && first_head < last_head) bring(ring, first_head, first_query, 0, 0);
  commit_copies();
  if (static_cast<int>(threadIdx.x) < step)
    facts[0][threadIdx.x] = facts_of(first_head, first_query);
  wait_for_copies<0>();
  if (task.key_slices == 1) settle<Product, slice, tile_rows>(k, scores.k);
  if (task.value_slices == 1) settle_values<Product, slice, tile_rows>(v, task);

  const int own = 16 * warp * stride;
  int turn = 0, now = 0;  // where in the ring this step's tiles lie
  for (int head = first_head, begin = first_query; head < last_head; turn = 1 - turn) {
    const float g = task.gamma ? task.gamma[head * task.gamma_step] : 0.0f;
    const bool goes_on = begin + step < last_query;
    const int next_head = goes_on ? head : head + 1;
    const int next_begin = goes_on ? begin + step : first_query;
    Element *const q = ring + now, *const dy = q + step * stride;
    now = ahead<Product, slice> ? 2 * step * stride - now : now;
    Element* const next = ring + now;
    const QueryFacts coming = facts_of(next_head, next_begin);
    float s[m][4], dp[m][4];
    clear(s);
    clear(dp);
    if (task.gamma && task.value_slices == 1 && begin == first_query) {
      __syncthreads();
      bring_values(head, 0);
    }
    if (single) {
      wait_for_copies<0>();
      settle<Product, slice, step>(q, scores.q);
      settle<Product, slice, step>(dy, task.dy);
      __syncthreads();
      if (ahead<Product, slice> && next_head < last_head) bring(next, next_head, next_begin, 0, 0);
      commit_copies();
      if (busy) {
        dots<Product, slice>(s, k + own, q);
        dots<Product, slice>(dp, v + own, dy);
      }
    } else {
      for (int i = 0; i < parts; ++i) {
        const int key_part = i < task.key_slices ? (part + 1 + i) % task.key_slices : i;
        const int value_part = i < task.value_slices ? (part + 1 + i) % task.value_slices : i;
        __syncthreads();
        if (i < task.key_slices && task.key_slices > 1) bring_keys(key_part * slice);
        if (i < task.value_slices && task.value_slices > 1) bring_values(head, value_part * slice);
        bring(q, head, begin, key_part, value_part);
        commit_copies();
        wait_for_copies<0>();
        if (i < task.key_slices) {
          if (task.key_slices > 1) settle<Product, slice, tile_rows>(k, scores.k);
          settle<Product, slice, step>(q, scores.q);
        }
        if (i < task.value_slices) {
          if (task.value_slices > 1) settle_values<Product, slice, tile_rows>(v, task);
          settle<Product, slice, step>(dy, task.dy);
        }
        __syncthreads();
        if (!busy) continue;
        if (i < task.key_slices) dots<Product, slice>(s, k + own, q);
        if (i < task.value_slices) dots<Product, slice>(dp, v + own, dy);
      }
    }

    if (busy) {
#pragma unroll
      for (int c = 0; c < m; ++c) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const QueryFacts of = facts[turn][8 * c + 2 * lane_column() + j];
#pragma unroll
          for (int e = j; e < 4; e += 2) {
            const float p = power_of_two(s[c][e] * of.factor - of.log_sum);
            s[c][e] = of.tau * p * (dp[c][e] - of.dot);
            dp[c][e] = p;
          }
        }
      }
      // Behind the tile and within the segment every query sees every key.
      const int first_position = at.offset() + begin, count = at.queries - begin;
      if (first_position < tile.first + rows || count < step || rows < tile_rows ||
          scores.window > 0) {
        const int column = first_position + 2 * lane_column();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int key = tile.first + row + 8 * i;
          const int first = key - column, last = scores.last_position(key, at.keys) - column;
#pragma unroll
          for (int c = 0; c < m; ++c) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
              const int query = 8 * c + j;
              float &p = dp[c][2 * i + j], &ds = s[c][2 * i + j];
              if (task.gamma && query == first) {
                const QueryFacts& of = facts[turn][query + 2 * lane_column()];
                ds -= of.tau * p * g * of.dot;
              }
              const bool seen = query >= first && query <= last;
              p = seen ? p : 0.0f;
              ds = seen ? ds : 0.0f;
            }
          }
        }
      }
      if (task.gamma) {
#pragma unroll
        for (int c = 0; c < m; ++c) {
#pragma unroll
          for (int e = 0; e < 4; ++e) dp[c][e] *= 1 - g;
        }
      }
      if (part < task.value_slices) mix<Product>(dv[0], dp, dy);
      if (part < task.key_slices) mix<Product>(dk[0], s, q);
    }
    if (static_cast<int>(threadIdx.x) < step) facts[1 - turn][threadIdx.x] = coming;
    if (single && !ahead<Product, slice> && next_head < last_head) {
      __syncthreads();
      bring(q, next_head, next_begin, 0, 0);
      commit_copies();
    }
    head = next_head;
    begin = next_begin;
  }

  if (!busy) return;
  const std::int64_t first_row = at.key + tile.first + 16 * warp;
  const int count = rows - 16 * warp;
  if (task.dk && part < task.key_slices) {
    const float factors[1][2] = {{scores.scale, scores.scale}};
    store_rows<Product>(k + own, task.dk, first_row, count, key_head, part * slice, dk, factors);
  }
  if (task.dv && part < task.value_slices) {
    const float factors[1][2] = {{1, 1}};
    store_rows<Product>(v + own, task.dv, first_row, count, key_head, part * slice, dv, factors);
  }
}

/// A warp for each row and head.
__global__ void row_dots_kernel(HeadsView x, HeadsView y, std::int64_t rows, std::int32_t heads,
                                float* dots) {
  const std::int64_t all = rows * heads;
  for (std::int64_t i = thread_in_grid() / warp_size; i < all; i += threads_in_grid() / warp_size) {
    const std::int64_t row = i / heads;
    const auto head = static_cast<int>(i % heads);
    const float dot = warp_dot(x, row, head, y, row, head);
    if (lane_index() == 0) dots[i] = dot;
  }
}

/// One block for each result.
__global__ void add_up_kernel(const float* parts, std::int64_t outer, std::int64_t inner,
                              float* result, bool add) {
  __shared__ float sums[32];
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < outer * inner; i += blockDim.x) {
    sum += parts[(i / inner * gridDim.x + blockIdx.x) * inner + i % inner];
  }
  sum = block_sum(sum, sums);
  if (threadIdx.x == 0) result[blockIdx.x] = add ? result[blockIdx.x] + sum : sum;
}

}  // namespace

void add_up(Stream& stream, const float* parts, std::int64_t outer, std::int64_t inner,
            const Target& result) {
  launch(stream, result.tensor.size(), 256, 0, &add_up_kernel, parts, outer, inner,
         result.tensor.data<float>(), result.add);
}

void row_dots(CudaBackend& backend, const HeadsView& x, const HeadsView& y, std::int64_t rows,
              std::int32_t heads, float* dots) {
  launch(backend.stream(), backend.blocks_for(rows * heads * warp_size, 256), 256, 0,
         &row_dots_kernel, x, y, rows, heads, dots);
}

void attention_gradients(CudaBackend& backend, Math math, const Scores& scores,
                         const HeadsTarget& dq, const HeadsTarget& dk, const HeadsTarget& dv,
                         const Target& dbeta, GradientTask task) {
  task.dq = view(dq);
  task.dk = view(dk);
  task.dv = view(dv);
  const std::int64_t rows = scores.q.data.rows(), count = scores.queries.count();
  const std::int64_t width = scores.q.width, v_width = task.v.width;
  visit_product(math, scores.q.data.dtype(), std::max(width, v_width),
                [&](auto product, auto size) {
                  using Kind = decltype(product);
                  constexpr int slice = decltype(size)::value;
                  constexpr std::size_t bytes = gradient_bytes<Kind, slice>;
                  task.key_slices = slices(width, slice);
                  task.value_slices = slices(v_width, slice);
                  if (dq || dbeta) {
                    const std::int64_t slots = tile_slots(rows, count, tile_rows);
                    const std::int64_t parts = slots * scores.q.heads * task.key_slices;
                    Tensor sums;
                    if (dbeta) {
                      sums = Tensor(backend, {std::max<std::int64_t>(1, parts)}, DType::f32);
                      task.dbeta = sums.data<float>();
                    }
                    launch(backend.stream(), {slots, scores.q.heads, task.key_slices},
                           attention_threads, bytes, &query_gradients<Kind, slice>, task);
                    if (dbeta) add_up(backend.stream(), sums.data<float>(), parts, 1, dbeta);
                  }
                  if (dk || dv) {
                    launch(backend.stream(),
                           {tile_slots(scores.k.data.rows(), count, tile_rows), scores.k.heads,
                            std::max(task.key_slices, task.value_slices)},
                           attention_threads, bytes, &key_gradients<Kind, slice>, task);
                  }
                });
}

void CudaBackend::run(const AttentionBackward& op) {
  const Scores& scores = op.scores;
  const std::int64_t rows = scores.q.data.rows();
  const Tensor dots(*this, op.log_sum.shape(), DType::f32);
  const auto heads = static_cast<std::int32_t>(scores.q.heads);
  row_dots(*this, view(op.dy), view(op.y), rows, heads, dots.data<float>());
  attention_gradients(*this, math(scores.math), scores, op.dq, op.dk, op.dv, op.dbeta,
                      {.scores = view(scores),
                       .v = view(op.v),
                       .dy = view(op.dy),
                       .log_sum = op.log_sum.data<float>(),
                       .row_dots = dots.data<float>()});
}

}  // namespace longhand::cuda
