#include "cuda/attention/gradients.h"

namespace longhand::cuda {
namespace {

/// The numbers of one query that this kernel needs.
struct alignas(16) QueryFacts {
  float factor, log_sum, tau, dot;
};

/// dk_j = scale sum_i tau_i dS_ij q_i,  dv_j = sum_i P_ij dy_i (for ChaCAL times 1 - g), also
/// summed over the query heads that read key head blockIdx.y. Scores are transposed: each row is a
/// key. If scores are shifted, the kernel also computes dc_j of each query head.
template <class Product, int slice, bool shifted, bool ahead>
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

  // first_query .. last_query - 1 include all queries that see a key of this tile. The block
  // processes them for one query head after another.
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
    const float tau = scores.tau_of(at.query + begin + r, head);
    float log_sum = task.log_sum[at_row] * log2_of_e;
    if (shifted) {
      const int position = at.offset() + begin + r;
      log_sum -= scores.shift_of(at, position, head, tile.first) * log2_of_e;
    }
    return QueryFacts{scores.scale * tau * log2_of_e, log_sum, tau, task.row_dots[at_row]};
  };
  // Stores dc of this thread's keys. Each of the four lanes that share a key has a part of its sum.
  const auto put_shift = [&](int head, const float(&sums)[2]) {
    if (!task.dshift || part > 0) return;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = row + 8 * i, position = tile.first + r;
      float sum = -row_sum(sums[i]);
      if (r >= rows || lane_column() > 0) continue;
      if (position >= at.offset()) {
        sum += task.row_sums[(at.query + position - at.offset()) * scores.heads + head];
      }
      float* const to = task.dshift + (at.key + position) * scores.heads + head;
      *to = task.add_shift ? *to + sum : sum;
    }
  };

  // Numbers of this thread's keys. shift: c minus c of the tile's first key, as in QueryFacts.
  // shift_sums: sums of dS.
  float shift[2] = {0, 0}, shift_sums[2] = {0, 0};
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
  int turn = 0, now = 0;  // now: offset of this step's tiles in the ring
  for (int head = first_head, begin = first_query; head < last_head; turn = 1 - turn) {
    const float g = task.gamma ? task.gamma[head * task.gamma_step] : 0.0f;
    if (shifted && begin == first_query) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int key = tile.first + min(row + 8 * i, rows - 1);
        shift[i] = scores.shift_of(at, key, head, tile.first) * log2_of_e;
        shift_sums[i] = 0;
      }
    }
    const bool goes_on = begin + step < last_query;
    const int next_head = goes_on ? head : head + 1;
    const int next_begin = goes_on ? begin + step : first_query;
    Element *const q = ring + now, *const dy = q + step * stride;
    now = ahead ? 2 * step * stride - now : now;
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
      if (ahead && next_head < last_head) bring(next, next_head, next_begin, 0, 0);
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
            float power = s[c][e] * of.factor - of.log_sum;
            if constexpr (shifted) power -= shift[e / 2];
            const float p = power_of_two(power);
            s[c][e] = (shifted ? 1.0f : of.tau) * p * (dp[c][e] - of.dot);
            dp[c][e] = p;
          }
        }
      }
      // A step needs no mask if all its queries come after the tile's last position, unless the
      // step or the tile is incomplete or there is a window.
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
                ds -= (shifted ? 1.0f : of.tau) * p * g * of.dot;
              }
              const bool seen = query >= first && query <= last;
              p = seen ? p : 0.0f;
              ds = seen ? ds : 0.0f;
            }
          }
        }
      }
      if constexpr (shifted) {
#pragma unroll
        for (int c = 0; c < m; ++c) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const float tau = facts[turn][8 * c + 2 * lane_column() + j].tau;
#pragma unroll
            for (int e = j; e < 4; e += 2) {
              shift_sums[e / 2] += s[c][e];
              s[c][e] *= tau;
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
    if (single && !ahead && next_head < last_head) {
      __syncthreads();
      bring(q, next_head, next_begin, 0, 0);
      commit_copies();
    }
    if (shifted && next_head != head && busy) put_shift(head, shift_sums);
    head = next_head;
    begin = next_begin;
  }

  // The results overwrite k and v in shared memory. If no query sees these keys, the block has not
  // passed a barrier yet, and other threads may still copy keys and values there.
  if (first_head == last_head) __syncthreads();
  if (!busy) return;
  if (shifted && first_head == last_head) {
    for (int head = first_head; head < first_head + scores.group; ++head) {
      put_shift(head, shift_sums);
    }
  }
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

}  // namespace

void launch_key_gradients(CudaBackend& backend, Math math, const Scores& scores,
                          GradientTask task) {
  visit_gradients(math, scores, task, [&](auto product, auto size, auto shift) {
    using Kind = decltype(product);
    constexpr int slice = decltype(size)::value;
    choose_steps<Kind, slice>(backend.device(), [&](auto ahead, std::size_t bytes) {
      launch(backend.stream(),
             {tile_slots(scores.k.data.rows(), scores.queries.count(), tile_rows), scores.k.heads,
              std::max(task.key_slices, task.value_slices)},
             attention_threads, bytes,
             &key_gradients<Kind, slice, decltype(shift)::value, decltype(ahead)::value>, task);
    });
  });
}

}  // namespace longhand::cuda
