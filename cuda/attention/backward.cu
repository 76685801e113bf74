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
constexpr std::size_t gradient_bytes = sizeof(typename Product::Element) * 2 *
                                       (tile_rows +
                                        step_rows<Product, slice>)*Product::stride(slice);

/// v, or in a chain U of query head `head`, for the keys first, first + 1, ... of a segment.
template <class Product, int slice>
__device__ __forceinline__ void stage_values(typename Product::Element* tile, int rows,
                                             const GradientTask& task, const SegmentView& at,
                                             int first, int count, int head, int column) {
  const int key_head = head / task.scores.group;
  if (task.gamma) {
    stage_chain<Product, slice>(
        tile, rows, task.v, at.key + first, count, key_head, column,
        task.gamma[head * task.gamma_step],
        [&](float(&y)[8], int r, int c) { load_eight(y, task.y, at.query + first + r, head, c); });
  } else {
    stage<Product, slice>(tile, rows, task.v, at.key + first, count, key_head, column);
  }
}

/// dq_i = tau_i r_i with r_i = scale sum_j dS_ij k_j, and this tile's part of
/// dbeta = sum_i ln n_i q_i . r_i
template <class Product, int slice>
__global__ void __launch_bounds__(attention_threads) query_gradients(GradientTask task) {
  using Element = typename Product::Element;
  constexpr int step = step_rows<Product, slice>, n = slice / 8, m = step / 8;
  constexpr int stride = Product::stride(slice);
  __shared__ float sums[32];
  Element* const q = shared_memory<Element>();
  Element* const dy = q + tile_rows * stride;
  Element* const k = dy + tile_rows * stride;
  Element* const v = k + step * stride;

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

  float dq[n][4], factor[2], log_sum[2], d[2];
  clear(dq);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = row + 8 * i;
    const std::int64_t at_row = (first_row + r) * scores.heads + head;
    factor[i] = scores.scale * scores.tau(start + r, at.keys) * log2_of_e;
    log_sum[i] = r < rows ? task.log_sum[at_row] * log2_of_e : 0.0f;
    d[i] = r < rows ? task.row_dots[at_row] : 0.0f;
  }
  if (task.key_slices == 1) {
    stage<Product, slice>(q, tile_rows, scores.q, first_row, rows, head, 0);
  }
  if (task.value_slices == 1) {
    stage<Product, slice>(dy, tile_rows, task.dy, first_row, rows, head, 0);
  }

  const int first_key = scores.first_key(start) / step * step,
            parts = max(task.key_slices, task.value_slices);
  for (int begin = first_key; begin < start + rows; begin += step) {
    const int count = min(step, start + rows - begin);
    float s[m][4], dp[m][4];
    clear(s);
    clear(dp);
    for (int i = 0; i < parts; ++i) {
      const int key_part = (part + 1 + i) % task.key_slices * slice;
      __syncthreads();
      if (i < task.key_slices) {
        if (task.key_slices > 1) {
          stage<Product, slice>(q, tile_rows, scores.q, first_row, rows, head, key_part);
        }
        stage<Product, slice>(k, step, scores.k, at.key + begin, count, key_head, key_part);
      }
      if (i < task.value_slices) {
        if (task.value_slices > 1) {
          stage<Product, slice>(dy, tile_rows, task.dy, first_row, rows, head, i * slice);
        }
        stage_values<Product, slice>(v, step, task, at, begin, count, head, i * slice);
      }
      __syncthreads();
      if (!busy) continue;
      const int own = 16 * warp * stride;
      if (i < task.key_slices) Product::template dots<slice>(s, q + own, k);
      if (i < task.value_slices) Product::template dots<slice>(dp, dy + own, v);
    }
    if (!busy) continue;

    const bool masked = begin + step > start || scores.window > 0;
#pragma unroll
    for (int c = 0; c < m; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = e / 2, key = begin + 8 * c + 2 * lane_column() + e % 2;
        const int position = start + row + 8 * i;
        const float p = power_of_two(s[c][e] * factor[i] - log_sum[i]);
        float ds = p * (dp[c][e] - d[i]);
        if (masked) {
          if (key == position) ds -= p * g * d[i];
          if (!(key < begin + count && visible(scores, position, key))) ds = 0;
        }
        s[c][e] = ds;
      }
    }
    Product::template mix<m, n>(dq, s, k);
  }

  float beta_sum = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = row + 8 * i;
    if (r >= rows) continue;
    const float tau = scores.tau(start + r, at.keys);
    float row_total = 0;
#pragma unroll
    for (int c = 0; c < n; ++c) {
      const int column = part * slice + 8 * c + 2 * lane_column();
      const float r0 = scores.scale * dq[c][2 * i], r1 = scores.scale * dq[c][2 * i + 1];
      if (task.dq) store_pair(task.dq, first_row + r, head, column, tau * r0, tau * r1);
      if (!dbeta) continue;
      if (column < scores.q.width)
        row_total += load_one(scores.q, first_row + r, head, column) * r0;
      if (column + 1 < scores.q.width) {
        row_total += load_one(scores.q, first_row + r, head, column + 1) * r1;
      }
    }
    if (dbeta) beta_sum += scores.log_n(start + r, at.keys) * row_total;
  }
  if (dbeta) {
    beta_sum = block_sum(beta_sum, sums);
    if (threadIdx.x == 0) *dbeta = beta_sum;
  }
}

/// dk_j = scale sum_i tau_i dS_ij q_i,  dv_j = sum_i P_ij dy_i (in a chain times 1 - g), over the
/// query heads that read key head blockIdx.y. Scores lie transposed: a row is a key.
template <class Product, int slice>
__global__ void __launch_bounds__(attention_threads) key_gradients(GradientTask task) {
  using Element = typename Product::Element;
  constexpr int step = step_rows<Product, slice>, n = slice / 8, m = step / 8;
  constexpr int stride = Product::stride(slice);
  __shared__ float factors[step], taus[step], log_sums[step], dots[step];
  Element* const k = shared_memory<Element>();
  Element* const v = k + tile_rows * stride;
  Element* const q = v + tile_rows * stride;
  Element* const dy = q + step * stride;

  const ScoresView& scores = task.scores;
  const int key_head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const Tile tile =
      tile_at(scores.segments.key_begin, scores.segments.count, tile_rows, blockIdx.x);
  const SegmentView at = scores.segments[tile.segment];
  if (tile.first >= at.keys) return;
  const int rows = min(tile_rows, at.keys - tile.first);
  const int warp = warp_index(), row = 16 * warp + lane_row();
  const bool busy = 16 * warp < rows;

  float dk[n][4], dv[n][4];
  clear(dk);
  clear(dv);
  if (task.key_slices == 1) {
    stage<Product, slice>(k, tile_rows, scores.k, at.key + tile.first, rows, key_head, 0);
  }
  // The queries that see a key of this tile.
  const int first_query = max(0, tile.first - at.offset()) / step * step;
  std::int64_t last_query = at.queries;
  if (scores.window > 0) {
    last_query = min(last_query, tile.first + rows - 1 + scores.window - at.offset());
  }
  const int parts = max(task.key_slices, task.value_slices);

  for (int head = key_head * scores.group; head < (key_head + 1) * scores.group; ++head) {
    const float g = task.gamma ? task.gamma[head * task.gamma_step] : 0.0f;
    if (task.value_slices == 1 && (task.gamma || head == key_head * scores.group)) {
      __syncthreads();
      stage_values<Product, slice>(v, tile_rows, task, at, tile.first, rows, head, 0);
    }
    for (int begin = first_query; begin < last_query; begin += step) {
      const int count = min(step, at.queries - begin);
      float s[m][4], dp[m][4];
      clear(s);
      clear(dp);
      for (int i = 0; i < parts; ++i) {
        const int key_part = (part + 1 + i) % task.key_slices * slice;
        const int value_part = (part + 1 + i) % task.value_slices * slice;
        __syncthreads();
        if (i == 0 && static_cast<int>(threadIdx.x) < step) {
          const int r = static_cast<int>(threadIdx.x);
          const std::int64_t at_row = (at.query + begin + r) * scores.heads + head;
          const float tau = scores.tau(at.offset() + begin + r, at.keys);
          taus[r] = tau;
          factors[r] = scores.scale * tau * log2_of_e;
          log_sums[r] = r < count ? task.log_sum[at_row] * log2_of_e : 0.0f;
          dots[r] = r < count ? task.row_dots[at_row] : 0.0f;
        }
        if (i < task.key_slices) {
          if (task.key_slices > 1) {
            stage<Product, slice>(k, tile_rows, scores.k, at.key + tile.first, rows, key_head,
                                  key_part);
          }
          stage<Product, slice>(q, step, scores.q, at.query + begin, count, head, key_part);
        }
        if (i < task.value_slices) {
          if (task.value_slices > 1) {
            stage_values<Product, slice>(v, tile_rows, task, at, tile.first, rows, head,
                                         value_part);
          }
          stage<Product, slice>(dy, step, task.dy, at.query + begin, count, head, value_part);
        }
        __syncthreads();
        if (!busy) continue;
        const int own = 16 * warp * stride;
        if (i < task.key_slices) Product::template dots<slice>(s, k + own, q);
        if (i < task.value_slices) Product::template dots<slice>(dp, v + own, dy);
      }
      if (!busy) continue;

      // Behind the tile and within the segment every query sees every key.
      const bool masked = at.offset() + begin < tile.first + rows || count < step ||
                          rows < tile_rows || scores.window > 0;
#pragma unroll
      for (int c = 0; c < m; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int r = 8 * c + 2 * lane_column() + e % 2, key = tile.first + row + 8 * (e / 2);
          const int position = at.offset() + begin + r;
          float p = power_of_two(s[c][e] * factors[r] - log_sums[r]);
          float ds = taus[r] * p * (dp[c][e] - dots[r]);
          if (masked) {
            if (key == position) ds -= taus[r] * p * g * dots[r];
            if (!(r < count && visible(scores, position, key))) p = ds = 0;
          }
          s[c][e] = ds;
          dp[c][e] = (1 - g) * p;
        }
      }
      if (part < task.value_slices) Product::template mix<m, n>(dv, dp, dy);
      if (part < task.key_slices) Product::template mix<m, n>(dk, s, q);
    }
  }

#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (row + 8 * i >= rows) continue;
    const std::int64_t to = at.key + tile.first + row + 8 * i;
#pragma unroll
    for (int c = 0; c < n; ++c) {
      const int column = part * slice + 8 * c + 2 * lane_column();
      if (task.dk && part < task.key_slices) {
        store_pair(task.dk, to, key_head, column, scores.scale * dk[c][2 * i],
                   scores.scale * dk[c][2 * i + 1]);
      }
      if (task.dv && part < task.value_slices) {
        store_pair(task.dv, to, key_head, column, dv[c][2 * i], dv[c][2 * i + 1]);
      }
    }
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
