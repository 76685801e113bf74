#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "cuda/attention/run.h"
#include "cuda/attention/tickets.h"

/// The forward pass of softmax attention and ChaCAL. A thread block has 64 or 128 queries of one
/// head of one segment and processes their keys in blocks of 64. It keeps a level b, which is near
/// the maximum score so far, and the sums l = sum_j 2^(s_j - b) and o = sum_j 2^(s_j - b) v_j.
/// Scores are multiplied by log2 e, so that powers of 2 suffice. If the maximum m of a block of
/// keys is more than `slack` above b, l and o are first multiplied by 2^(b - m), and m becomes the
/// level. Then the terms of the block are added. No power exceeds 2^slack, and levels seldom
/// change. At the end y = o / l and log_sum = (b + log2 l) ln 2.
///
/// The last block of keys has the same positions as the queries. For ChaCAL, the values of earlier
/// blocks are U_j = (1 - g) v_j + g y_j, because their y_j are finished. In the last block the
/// values are (1 - g) v_j, and the missing terms are added by substitution: y_i = o_i / l_i + g
/// sum_j P_ij y_j, over the j < i of the last block.
///
/// A sink is treated like a key before all others: its score is the first level, and l begins at 1.
///
/// For heads wider than a slice, scores are summed over the slices of the keys, and each thread
/// block computes one slice of y.
///
/// Keys and values are loaded during computation. If three thread blocks with two pairs of tiles
/// each fit on a multiprocessor, the keys and values of the next block are loaded while the current
/// block is computed. Otherwise the values of a block are loaded while its scores are computed, and
/// the keys of the next block are loaded during the rest of the computation.
namespace longhand::cuda {

struct AttentionTask {
  ScoresView scores;
  HeadsView v = {}, y = {}, earlier = {};
  const float* sink = nullptr;  // may be null
  float* log_sum = nullptr;
  std::int32_t key_slices = 1, value_slices = 1;
  const float* gamma = nullptr;
  std::int32_t gamma_step = 0;
  std::int32_t* progress = nullptr;
  // Number of parts into which the keys are divided (parts.cu). If there are several parts, y
  // receives o of each part, in f32 and not yet divided by l.
  std::int32_t key_parts = 1;
  std::int64_t query_rows = 0;
  Pair<float>* stats = nullptr;  // b and l of each part, [key parts, query rows, heads]
};

/// Variants of the kernel. whole: a block processes all keys that its queries see. part: a block
/// processes one part of these keys, and parts.cu combines the parts. chacal: a block processes all
/// keys with the values of ChaCAL and ends with the substitution.
enum class Walk { whole, part, chacal };

inline constexpr int key_rows = 64;  // keys per block of keys
inline constexpr float slack = 8;

template <class Product, int slice>
constexpr int tile_size = key_rows* Product::stride(slice);

/// Number of pairs of tiles (one of keys, one of values) in the shared memory of a thread block
/// with 64 * bands queries.
template <class Product, int slice, int bands>
constexpr int pairs = sizeof(typename Product::Element) * tile_size<Product, slice>*(bands + 4) <=
                              72 << 10
                          ? 2
                          : 1;

template <class Product, int slice, int bands>
constexpr std::size_t forward_bytes = sizeof(typename Product::Element) *
                                      tile_size<Product, slice>*(bands +
                                                                 2 * pairs<Product, slice, bands>);

template <class Product, int slice, int bands, Walk walk, bool shifted>
__device__ void attend(const AttentionTask& task, const Tile& tile, int head, int part,
                       int key_part = 0) {
  constexpr bool chacal = walk == Walk::chacal;
  using Element = typename Product::Element;
  constexpr int n = slice / 8, m = key_rows / 8, block_rows = bands * tile_rows;
  constexpr int size = tile_size<Product, slice>;
  // true if these template arguments are used only for heads that are at most one slice wide
  constexpr bool one_slice = slice < 128 || bands == 2;
  constexpr bool both = !chacal && pairs<Product, slice, bands> == 2;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Element* const q = shared_memory<Element>();
  Element* const ring = q + bands * size;

  const ScoresView& scores = task.scores;
  const SegmentView at = scores.segments[tile.segment];
  const int rows = min(block_rows, at.queries - tile.first);
  // The queries of the tile have the positions start .. stop - 1.
  const int start = at.offset() + tile.first, stop = start + rows;
  const int first_row = static_cast<int>(at.query) + tile.first,
            first_key = static_cast<int>(at.key);
  const int key_head = head / scores.group, first_value = part * slice;
  const int warp_row = 16 * bands * warp_index();
  const bool busy = warp_row < rows;
  const int first_of_warp = start + warp_row,
            last_of_warp = min(first_of_warp + 16 * bands, stop) - 1;
  const float g = chacal ? task.gamma[head * task.gamma_step] : 0.0f;

  // Small arrays are stored in the padding of tiles, because some tiles fill all 99 KiB that a
  // block may have on devices of compute capability 8.6, 8.9 and 12. The padding of row r of q
  // contains four floats: the factor of query r, c of query r, and c of key r of the current and of
  // the previous block of keys. Other warps may still read the previous one.
  const auto of_row = [&](int r) { return padding<Product, slice>(q, r); };
  // Values that are needed only at the end. They are in shared memory because registers are scarce.
  struct Kept {
    int row, head, part;
  };
  auto* const kept = reinterpret_cast<Kept*>(padding<Product, slice>(ring, 0));
  if (threadIdx.x == 0) *kept = {first_row, head, part};
  for (int r = static_cast<int>(threadIdx.x); r < block_rows; r += attention_threads) {
    const float tau = scores.tau_of(first_row + r, head, r < rows);
    const float factor = scores.scale * tau * log2_of_e;
    // A masked score is -infinity, which becomes NaN if it is multiplied by 0. A factor of 0 is
    // therefore replaced by 2^-100.
    of_row(r)[0] = fabsf(factor) < 0x1p-100f ? 0x1p-100f : factor;
    if (shifted) of_row(r)[1] = r < rows ? scores.shift_of(first_key + start + r, head) : 0.0f;
  }
  float out[bands][n][4], level[bands][2], sum[bands][2];
  float p[bands][m][4];  // first the scores of a block of keys, then their weights
#pragma unroll
  for (int t = 0; t < bands; ++t) {
    clear(out[t]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      level[t][i] = -infinity;
      sum[t][i] = 0;
      if (walk == Walk::part || !task.sink) continue;
      level[t][i] = task.sink[head] * log2_of_e;
      // Four lanes share a row. Only one of them counts the sink's term, which is 1.
      sum[t][i] = lane_column() == 0 ? 1.0f : 0.0f;
    }
  }

  // Blocks of keys begin at the multiples of 64 before `start`, at `start`, and every 64 keys after
  // `start`. If keys are divided into parts, blocks begin at multiples of 64 only.
  int first_block = scores.first_key(start) / key_rows * key_rows, until = stop;
  if constexpr (walk == Walk::part) {
    const int blocks = (stop - first_block + key_rows - 1) / key_rows;
    const int length = (blocks + task.key_parts - 1) / task.key_parts * key_rows;
    first_block = min(first_block + key_part * length, stop);
    until = min(first_block + length, stop);
  }
  const auto end_of = [&](int begin) {
    return min(begin + key_rows, walk != Walk::part && begin < start ? start : until);
  };
  const auto bring = [&](Element* to, const HeadsView& x, int begin, int column) {
    if (begin < until) {
      stage<Product, slice, key_rows>(to, x, first_key + begin, end_of(begin) - begin, key_head,
                                      column);
    }
  };
  const auto bring_queries = [&](int column) {
    stage<Product, slice, block_rows>(q, scores.q, first_row, rows, head, column);
  };
  if (one_slice || task.key_slices == 1) bring_queries(0);
  if (!chacal) bring(ring, scores.k, first_block, 0);
  if (both) bring(ring + size, task.v, first_block, first_value);
  commit_copies();
  wait_for_copies<0>();
  if (one_slice || task.key_slices == 1) settle<Product, slice, block_rows>(q, scores.q);

  int end = 0, now = 0;  // now: offset in the ring of the tiles of this block of keys
  int turn = 0;
  for (int begin = first_block; begin < until; begin = end, turn = 1 - turn) {
    const bool own = begin == start;
    end = end_of(begin);
    if (shifted && static_cast<int>(threadIdx.x) < key_rows) {
      const int key = begin + static_cast<int>(threadIdx.x);
      of_row(static_cast<int>(threadIdx.x))[2 + turn] =
          key < end ? scores.shift_of(std::int64_t{first_key} + key, head) : 0.0f;
    }
    // For ChaCAL, the values are loaded later, and they overwrite the keys.
    Element *const k = ring + now, *const v = chacal ? k : k + size;
    now = both ? 2 * size - now : now;
    Element* const next = ring + now;

    if (chacal) {
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
    } else if (!chacal) {
      bring(v, task.v, begin, first_value);
    }
    commit_copies();

    // True if a query of this warp sees a key of this block.
    const bool sees = busy && begin <= last_of_warp && scores.first_key(first_of_warp) < end;
#pragma unroll
    for (int t = 0; t < bands; ++t) clear(p[t]);
    const Element* const own_q = q + warp_row * Product::stride(slice);
    if (one_slice || task.key_slices == 1) {
      if (sees) Product::template dots<slice>(p, own_q, k);
    } else {
      for (int s = 0; s < task.key_slices; ++s) {
        __syncthreads();
        bring_queries(s * slice);
        if (s > 0) bring(k, scores.k, begin, s * slice);
        commit_copies();
        wait_for_copies<0>();
        settle<Product, slice, block_rows>(q, scores.q);
        if (s > 0) settle<Product, slice, key_rows>(k, scores.k);
        __syncthreads();
        if (sees) Product::template dots<slice>(p, own_q, k);
      }
    }
    if (!chacal && !both) {
      wait_for_copies<0>();
      settle<Product, slice, key_rows>(v, task.v);
      __syncthreads();
      bring(k, scores.k, end, 0);
      commit_copies();
    }

    if (sees) {
      const int lane = lane_register(), row = warp_row + lane / 4;
      float factor[bands][2];
#pragma unroll
      for (int t = 0; t < bands; ++t) {
#pragma unroll
        for (int i = 0; i < 2; ++i) factor[t][i] = of_row(row + 16 * t + 8 * i)[0];
      }
      if constexpr (shifted) {
        // The factor is applied to the scores here and is then set to 1, so that it is not applied
        // again.
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
      } else {
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
      if (end > first_of_warp || end - begin < key_rows || scores.window > 0) {
        const int column = begin + 2 * (lane % 4);
#pragma unroll
        for (int t = 0; t < bands; ++t) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const int position = start + row + 16 * t + 8 * i;
            const int first = scores.first_key(position) - column,
                      last = min(position, end - 1) - column;
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
          higher = higher || top[t][i] > level[t][i] + slack;
        }
      }
      if (__any_sync(full_warp, higher)) {
#pragma unroll
        for (int t = 0; t < bands; ++t) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            if (!(top[t][i] > level[t][i] + slack)) continue;
            const float shrink = power_of_two(level[t][i] - top[t][i]);
            level[t][i] = top[t][i];
            sum[t][i] *= shrink;
#pragma unroll
            for (int c = 0; c < n; ++c) {
              out[t][c][2 * i] *= shrink;
              out[t][c][2 * i + 1] *= shrink;
            }
          }
        }
      }
#pragma unroll
      for (int t = 0; t < bands; ++t) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float base = level[t][i] == -infinity ? 0.0f : level[t][i];
#pragma unroll
          for (int c = 0; c < m; ++c) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
              float& s = p[t][c][2 * i + j];
              s = power_of_two(s * factor[t][i] - base);
              sum[t][i] += s;
            }
          }
        }
      }
    }

    if constexpr (chacal) {
      // When the tile of this block's last key is finished, y is known for all keys of this block.
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
      stage_chacal<Product, slice>(v, tile_rows, task.v, at.key + begin, end - begin, key_head,
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
    if (sees) Product::mix(out, p, v);
  }

  // If there are no keys, this is the first barrier between writing and reading `kept`.
  if constexpr (walk == Walk::part) __syncthreads();
  const int lane = lane_register(), row = warp_row + lane / 4;
  const int y_row = kept->row, y_head = kept->head, y_part = kept->part;
  float inverse[bands][2];
#pragma unroll
  for (int t = 0; t < bands; ++t) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = row + 16 * t + 8 * i;
      const float total = row_sum(sum[t][i]);
      inverse[t][i] = walk == Walk::part ? 1.0f : 1.0f / total;
      if constexpr (walk == Walk::part) {
        if (y_part == 0 && lane % 4 == 0 && start + r < stop) {
          task.stats[(key_part * task.query_rows + y_row + r) * scores.heads + y_head] = {
              level[t][i], total};
        }
        continue;
      }
      if (task.log_sum && y_part == 0 && lane % 4 == 0 && start + r < stop) {
        task.log_sum[std::int64_t{y_row + r} * scores.heads + y_head] =
            (level[t][i] + log2f(total)) * ln_of_2;
      }
    }
  }

  if constexpr (walk == Walk::part) {
    HeadsView o = task.y;
    o.at = static_cast<float*>(o.at) + key_part * task.query_rows * o.columns;
    if (busy && first_block < until) {
      store_rows<Product>(q + warp_row * Product::stride(slice), o, y_row + warp_row,
                          stop - first_of_warp, y_head, y_part * slice, out, inverse);
    }
  } else if constexpr (!chacal) {
    if (busy) {
      store_rows<Product>(q + warp_row * Product::stride(slice), task.y, y_row + warp_row,
                          stop - first_of_warp, y_head, y_part * slice, out, inverse);
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
            sums[r * sums_stride<slice> + 8 * c + c0] = out[0][c][2 * i + j] * inverse[0][i];
          }
#pragma unroll
          for (int c = 0; c < m; ++c) {
            links[(8 * c + c0) * links_stride + r] = g * (p[0][c][2 * i + j] * inverse[0][i]);
          }
        }
      }
    }
    __syncthreads();
    substitute<slice>(sums, links, rows);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < rows * (slice / 2); i += attention_threads) {
      const int r = i / (slice / 2), c = i % (slice / 2) * 2;
      store_pair(task.y, y_row + r, y_head, y_part * slice + c, sums[r * sums_stride<slice> + c],
                 sums[r * sums_stride<slice> + c + 1]);
    }
  }
}

/// Creates a task with the members that softmax attention and ChaCAL share, and calls
/// body(Product{}, Slice{}, shifted, task). `sink` and `log_denominator` may be empty.
template <class Op, class Body>
void visit_forward(Math math, const Op& op, const Tensor& sink, const Tensor& log_denominator,
                   Body&& body) {
  const Scores& scores = op.scores;
  const auto with_shift = [&](auto product, auto size, const AttentionTask& task) {
    if (scores.decay) {
      body(product, size, std::true_type{}, task);
    } else {
      body(product, size, std::false_type{}, task);
    }
  };
  visit_product(math, scores.q.data.dtype(), std::max(scores.q.width, op.v.width),
                [&](auto product, auto size) {
                  constexpr int slice = decltype(size)::value;
                  with_shift(product, size,
                             AttentionTask{.scores = view(scores),
                                           .v = view(op.v),
                                           .y = view(op.y),
                                           .sink = pointer(sink),
                                           .log_sum = mutable_pointer(log_denominator),
                                           .key_slices = slices(scores.q.width, slice),
                                           .value_slices = slices(op.v.width, slice)});
                });
}

}  // namespace longhand::cuda
