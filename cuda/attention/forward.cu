#include <algorithm>
#include <limits>

#include "cuda/attention/chain.h"
#include "cuda/attention/run.h"

/// Softmax attention and ChaCAL, forward: a block has 64 queries of one head of one segment and
/// goes through their keys in blocks of 64. With the maximum m so far, l = sum_j 2^(s_j - m) and o
/// = sum_j 2^(s_j - m) v_j, a block of keys with a larger maximum m' first multiplies l and o by
/// 2^(m - m'), then adds its own. At the end y = o / l and log_sum = (m + log2 l) ln 2.
///
/// The last block of keys are the tile's own positions. In a chain the values before it are
/// U_j = (1 - g) v_j + g y_j of finished rows, its own are (1 - g) v_j, and what is then still
/// missing comes by substitution: y_i = o_i / l_i + g sum_(j < i, own) P_ij y_j.
///
/// Heads wider than a slice: scores sum over the slices of the keys; a block has one slice of the
/// values.
namespace longhand::cuda {
namespace {

struct AttentionTask {
  ScoresView scores;
  HeadsView v = {}, y = {}, earlier = {};
  float* log_sum = nullptr;
  std::int32_t key_slices = 1, value_slices = 1;
  const float* gamma = nullptr;
  std::int32_t gamma_step = 0;
  std::int32_t* progress = nullptr;
};

template <class Product, int slice>
constexpr int tile_size = tile_rows* Product::stride(slice);

template <class Product, int slice, bool chain>
constexpr std::size_t forward_bytes() {
  constexpr std::size_t tile = sizeof(typename Product::Element) * tile_size<Product, slice>;
  return chain ? std::max(2 * tile, substitution_bytes<slice>) : 3 * tile;
}

/// y_r += sum_(s < r) links[s][r] y_s, row by row; each thread a column.
template <int slice>
__device__ void substitute(float* sums, const float* links, int rows) {
  const int column = static_cast<int>(threadIdx.x);
  if (column >= slice) return;
  for (int panel = 0; panel < rows; panel += 16) {
    float y[16];
#pragma unroll
    for (int r = 0; r < 16; ++r) y[r] = sums[(panel + r) * sums_stride<slice> + column];
    for (int s = 0; s < panel; ++s) {
      const float done = sums[s * sums_stride<slice> + column];
      const float* const link = links + s * links_stride + panel;
#pragma unroll
      for (int r = 0; r < 16; ++r) y[r] += link[r] * done;
    }
#pragma unroll
    for (int s = 0; s < 15; ++s) {
      const float* const link = links + (panel + s) * links_stride + panel;
#pragma unroll
      for (int r = s + 1; r < 16; ++r) y[r] += link[r] * y[s];
    }
#pragma unroll
    for (int r = 0; r < 16; ++r) sums[(panel + r) * sums_stride<slice> + column] = y[r];
  }
}

template <class Product, int slice, bool chain>
__device__ void attend(const AttentionTask& task, const Tile& tile, int head, int part) {
  using Element = typename Product::Element;
  constexpr int n = slice / 8, m = tile_rows / 8;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Element* const q = shared_memory<Element>();
  Element* const k = q + tile_size<Product, slice>;
  Element* const v = chain ? k : k + tile_size<Product, slice>;  // a chain's come after its scores

  const ScoresView& scores = task.scores;
  const SegmentView at = scores.segments[tile.segment];
  const int rows = min(tile_rows, at.queries - tile.first);
  const int start = at.offset() + tile.first;  // the first row's position
  const int key_head = head / scores.group, first_value = part * slice;
  const int warp = warp_index(), row = 16 * warp + lane_row();
  const bool busy = 16 * warp < rows;
  const float g = chain ? task.gamma[head * task.gamma_step] : 0.0f;

  float out[n][4], top[2], sum[2] = {0, 0}, factor[2];
  float p[m][4];  // a block's scores, then its weights
  clear(out);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    top[i] = -infinity;
    factor[i] = scores.scale * scores.tau(start + row + 8 * i, at.keys) * log2_of_e;
  }
  if (task.key_slices == 1) {
    stage<Product, slice>(q, tile_rows, scores.q, at.query + tile.first, rows, head, 0);
  }

  int end = 0;
  for (int begin = scores.first_key(start) / tile_rows * tile_rows; begin < start + rows;
       begin = end) {
    const bool own = begin == start;
    end = own ? start + rows : min(begin + tile_rows, start);

    clear(p);
    for (int s = 0; s < task.key_slices; ++s) {
      __syncthreads();
      if (task.key_slices > 1) {
        stage<Product, slice>(q, tile_rows, scores.q, at.query + tile.first, rows, head, s * slice);
      }
      stage<Product, slice>(k, tile_rows, scores.k, at.key + begin, end - begin, key_head,
                            s * slice);
      if (!chain && s == 0) {
        stage<Product, slice>(v, tile_rows, task.v, at.key + begin, end - begin, key_head,
                              first_value);
      }
      __syncthreads();
      if (busy) Product::template dots<slice>(p, q + 16 * warp * Product::stride(slice), k);
    }

    if (busy) {
      const bool masked = own || end - begin < tile_rows || scores.window > 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int position = start + row + 8 * i;
        float highest = -infinity;
#pragma unroll
        for (int c = 0; c < m; ++c) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            float& s = p[c][2 * i + j];
            const int key = begin + 8 * c + 2 * lane_column() + j;
            s *= factor[i];
            if (masked && !(key < end && visible(scores, position, key))) s = -infinity;
            highest = fmaxf(highest, s);
          }
        }
        const float before = top[i];
        top[i] = fmaxf(before, row_max(highest));
        const float base = top[i] == -infinity ? 0.0f : top[i];
        const float shrink = power_of_two(before - base);
        sum[i] *= shrink;
#pragma unroll
        for (int c = 0; c < m; ++c) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            float& s = p[c][2 * i + j];
            s = power_of_two(s - base);
            sum[i] += s;
          }
        }
#pragma unroll
        for (int c = 0; c < n; ++c) {
          out[c][2 * i] *= shrink;
          out[c][2 * i + 1] *= shrink;
        }
      }
    }

    if constexpr (chain) {
      // The last of these keys has its y when its tile is done, and so have those before it.
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
      stage_chain<Product, slice>(v, tile_rows, task.v, at.key + begin, end - begin, key_head,
                                  first_value, g, [&](float(&y)[8], int r, int column) {
                                    if (own) return;
                                    const int j = begin + r;
                                    if (j < at.offset()) {
                                      load_eight(y, task.earlier, at.key + j, head, column);
                                    } else {
                                      load_eight(y, task.y, at.query + j - at.offset(), head,
                                                 column);
                                    }
                                  });
      __syncthreads();
    }
    if (busy) Product::template mix<m, n>(out, p, v);
  }

  float inverse[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float total = row_sum(sum[i]);
    inverse[i] = 1.0f / total;
    if (task.log_sum && part == 0 && lane_column() == 0 && row + 8 * i < rows) {
      task.log_sum[(at.query + tile.first + row + 8 * i) * scores.heads + head] =
          (top[i] + log2f(total)) * ln_of_2;
    }
  }
  const std::int64_t first_row = at.query + tile.first;

  if constexpr (!chain) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (row + 8 * i >= rows) continue;
#pragma unroll
      for (int c = 0; c < n; ++c) {
        store_pair(task.y, first_row + row + 8 * i, head, first_value + 8 * c + 2 * lane_column(),
                   out[c][2 * i] * inverse[i], out[c][2 * i + 1] * inverse[i]);
      }
    }
  } else {
    float* const sums = shared_memory<float>();
    float* const links = sums + tile_rows * sums_stride<slice>;
    __syncthreads();
    if (busy) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int r = row + 8 * i, c0 = 2 * lane_column() + j;
#pragma unroll
          for (int c = 0; c < n; ++c) {
            sums[r * sums_stride<slice> + 8 * c + c0] = out[c][2 * i + j] * inverse[i];
          }
#pragma unroll
          for (int c = 0; c < m; ++c) {
            links[(8 * c + c0) * links_stride + r] = g * (p[c][2 * i + j] * inverse[i]);
          }
        }
      }
    }
    __syncthreads();
    substitute<slice>(sums, links, rows);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < rows * (slice / 2); i += attention_threads) {
      const int r = i / (slice / 2), c = i % (slice / 2) * 2;
      store_pair(task.y, first_row + r, head, first_value + c, sums[r * sums_stride<slice> + c],
                 sums[r * sums_stride<slice> + c + 1]);
    }
  }
}

template <class Product, int slice>
__global__ void __launch_bounds__(attention_threads) attention_kernel(AttentionTask task) {
  const SegmentsView& segments = task.scores.segments;
  const Tile tile = tile_at(segments.query_begin, segments.count, tile_rows, blockIdx.x);
  if (tile.first >= segments.query_length[tile.segment]) return;
  attend<Product, slice, false>(task, tile, static_cast<int>(blockIdx.y),
                                static_cast<int>(blockIdx.z));
}

template <class Product, int slice>
__global__ void __launch_bounds__(attention_threads) chacal_kernel(AttentionTask task) {
  const SegmentsView& segments = task.scores.segments;
  const int heads = task.scores.heads, parts = task.value_slices;
  const int ranks = most_tiles(segments.query_length, segments.count);
  for (;;) {
    const ChainTile next = chain_tile(take_ticket(task.progress), segments.count, heads, parts);
    if (next.rank >= ranks) return;
    const Tile tile{next.segment, next.rank * tile_rows};
    if (tile.first >= segments.query_length[tile.segment]) continue;
    attend<Product, slice, true>(task, tile, next.head, next.slice);
    const std::int64_t slot =
        segments.query_begin[tile.segment] / tile_rows + tile.segment + next.rank;
    publish(task.progress + 1 + (slot * heads + next.head) * parts + next.slice);
  }
}

/// Fills in what both mechanisms have in common and calls body(Product{}, Slice{}, task).
template <class Op, class Body>
void visit_forward(Math math, const Op& op, Body&& body) {
  const Scores& scores = op.scores;
  visit_product(
      math, scores.q.data.dtype(), std::max(scores.q.width, op.v.width),
      [&](auto product, auto size) {
        constexpr int slice = decltype(size)::value;
        body(product, size,
             AttentionTask{.scores = view(scores),
                           .v = view(op.v),
                           .y = view(op.y),
                           .log_sum = op.log_sum ? op.log_sum.template data<float>() : nullptr,
                           .key_slices = slices(scores.q.width, slice),
                           .value_slices = slices(op.v.width, slice)});
      });
}

}  // namespace

void CudaBackend::run(const Attention& op) {
  visit_forward(math(op.scores.math), op, [&](auto product, auto size, const AttentionTask& task) {
    using Kind = decltype(product);
    constexpr int slice = decltype(size)::value;
    launch(stream_,
           {tile_slots(op.scores.q.data.rows(), op.scores.queries.count(), tile_rows),
            op.scores.q.heads, task.value_slices},
           attention_threads, forward_bytes<Kind, slice, false>(), &attention_kernel<Kind, slice>,
           task);
  });
}

void CudaBackend::run(const Chacal& op) {
  const std::int64_t rows = op.scores.q.data.rows(), count = op.scores.queries.count();
  if (rows == 0) return;
  visit_forward(math(op.scores.math), op, [&](auto product, auto size, AttentionTask task) {
    using Kind = decltype(product);
    constexpr int slice = decltype(size)::value;
    const std::int64_t slots = tile_slots(rows, count, tile_rows);
    const Tensor progress(*this, {progress_words(slots, op.scores.q.heads, task.value_slices)},
                          DType::i32);
    stream_.zero(progress.address(), progress.bytes());
    task.progress = progress.data<std::int32_t>();
    task.earlier = view(op.earlier);
    task.gamma = op.gamma.data<float>();
    task.gamma_step = op.gamma.size() == 1 ? 0 : 1;
    launch(stream_, chain_blocks(*this, slots * op.scores.q.heads * task.value_slices),
           attention_threads, forward_bytes<Kind, slice, true>(), &chacal_kernel<Kind, slice>,
           task);
  });
}

}  // namespace longhand::cuda
