#include "cuda/attention/gradients.h"

namespace longhand::cuda {
namespace {

/// dq_i = tau_i r_i with r_i = scale sum_j dS_ij k_j. A thread block computes one slice of r_i. It
/// also computes the part of dtau_i = q_i . r_i that belongs to this slice.
template <class Product, int slice, bool shifted, bool ahead>
__global__ void __launch_bounds__(attention_threads, slice < 128 ? 3 : 2)
    query_gradients(GradientTask task) {
  using Element = typename Product::Element;
  constexpr int step = step_rows<Product, slice>, n = slice / 8, m = step / 8;
  constexpr int stride = Product::stride(slice);
  // c of the keys of this step and of the previous step, which other warps may still read.
  __shared__ float key_shifts[2][shifted ? step : 1];
  Element* const q = shared_memory<Element>();
  Element* const dy = q + tile_rows * stride;
  Element* const ring = dy + tile_rows * stride;

  const ScoresView& scores = task.scores;
  const int head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const int key_head = head / scores.group;
  const Tile tile =
      tile_at(scores.segments.query_begin, scores.segments.count, tile_rows, blockIdx.x);
  const SegmentView at = scores.segments[tile.segment];
  if (tile.first >= at.queries) return;
  const int rows = min(tile_rows, at.queries - tile.first);
  const int start = at.offset() + tile.first;
  const std::int64_t first_row = at.query + tile.first;
  const int warp = warp_index(), row = 16 * warp + lane_row();
  const bool busy = 16 * warp < rows;
  const float g = task.gamma ? task.gamma[head * task.gamma_step] : 0.0f;

  float dq[1][n][4], factor[2], log_sum[2], d[2], shift[2] = {0, 0};
  float row_sums[2] = {0, 0};  // this thread's part of the row sums of dS
  clear(dq[0]);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = row + 8 * i;
    const std::int64_t at_row = (first_row + r) * scores.heads + head;
    factor[i] = scores.scale * scores.tau_of(first_row + r, head, r < rows) * log2_of_e;
    if (shifted && r < rows) shift[i] = scores.shift_of(at.key + start + r, head);
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
  int now = 0, turn = 0;  // now: offset of this step's tiles in the ring
  for (int begin = first_key; begin < stop; begin += step, turn = 1 - turn) {
    if (shifted && static_cast<int>(threadIdx.x) < step) {
      const int key = begin + static_cast<int>(threadIdx.x);
      key_shifts[turn][threadIdx.x] = key < stop ? scores.shift_of(at.key + key, head) : 0.0f;
    }
    Element *const k = ring + now, *const v = k + step * stride;
    now = ahead ? 2 * step * stride - now : now;
    Element* const next = ring + now;
    float s[m][4], dp[m][4];
    clear(s);
    clear(dp);
    if (single) {
      wait_for_copies<0>();
      settle<Product, slice, step>(k, scores.k);
      settle_values<Product, slice, step>(v, task);
      __syncthreads();
      if (ahead && begin + step < stop) bring(next, begin + step, 0, 0);
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
          float power = s[c][e] * factor[e / 2] - log_sum[e / 2];
          if constexpr (shifted) {
            const float of_key = key_shifts[turn][8 * c + 2 * lane_column() + e % 2];
            power += (shift[e / 2] - of_key) * log2_of_e;
          }
          const float p = power_of_two(power);
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
      if constexpr (shifted) {
#pragma unroll
        for (int c = 0; c < m; ++c) {
#pragma unroll
          for (int e = 0; e < 4; ++e) row_sums[e / 2] += s[c][e];
        }
      }
      mix<Product>(dq[0], s, k);
    }
    if (single && !ahead && begin + step < stop) {
      __syncthreads();
      bring(k, begin + step, 0, 0);
      commit_copies();
    }
  }

  float taus[1][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = row + 8 * i;
    taus[0][i] = scores.scale * scores.tau_of(first_row + r, head, r < rows);
    if (shifted && task.row_sums && part == 0) {
      const float all = row_sum(row_sums[i]);
      if (r < rows && lane_column() == 0)
        task.row_sums[(first_row + r) * scores.heads + head] = all;
    }
    if (!task.dtau) continue;
    float row_total = 0;
#pragma unroll
    for (int c = 0; c < n; ++c) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int column = part * slice + 8 * c + 2 * lane_column() + j;
        if (r >= rows || column >= scores.q.width) continue;
        row_total += load_one(scores.q, first_row + r, head, column) * dq[0][c][2 * i + j];
      }
    }
    row_total = scores.scale * row_sum(row_total);
    if (r < rows && lane_column() == 0) {
      task.dtau[(part * task.query_rows + first_row + r) * scores.heads + head] = row_total;
    }
  }
  if (task.dq && busy) {
    store_rows<Product>(q + own, task.dq, first_row + 16 * warp, rows - 16 * warp, head,
                        part * slice, dq, taus);
  }
}

/// y_i (+)= sum over slices s of parts(s, i), for i < entries.
__global__ void add_slices(const float* parts, int slices, std::int64_t entries, float* y,
                           bool add) {
  for (std::int64_t i = thread_in_grid(); i < entries; i += threads_in_grid()) {
    float sum = 0;
    for (int s = 0; s < slices; ++s) sum += parts[s * entries + i];
    y[i] = add ? y[i] + sum : sum;
  }
}

}  // namespace

void launch_query_gradients(CudaBackend& backend, Math math, const Scores& scores,
                            const Target& dtau, GradientTask task) {
  visit_gradients(math, scores, task, [&](auto product, auto size, auto shift) {
    using Kind = decltype(product);
    constexpr int slice = decltype(size)::value;
    const std::int64_t slots = tile_slots(scores.q.data.rows(), scores.queries.count(), tile_rows);
    const std::int64_t entries = scores.q.data.rows() * scores.q.heads;
    Tensor sums;
    if (dtau) {
      sums = Tensor(backend, {std::max<std::int64_t>(1, entries * task.key_slices)}, DType::f32);
      task.dtau = sums.data<float>();
      task.query_rows = scores.q.data.rows();
    }
    choose_steps<Kind, slice>(backend.device(), [&](auto ahead, std::size_t bytes) {
      launch(backend.stream(), {slots, scores.q.heads, task.key_slices}, attention_threads, bytes,
             &query_gradients<Kind, slice, decltype(shift)::value, decltype(ahead)::value>, task);
    });
    if (!dtau) return;
    launch(backend.stream(), backend.blocks_for(entries, 256), 256, 0, &add_slices, task.dtau,
           task.key_slices, entries, dtau.tensor.data<float>(), dtau.add);
  });
}

}  // namespace longhand::cuda
