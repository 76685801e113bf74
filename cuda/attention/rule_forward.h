#pragma once

#include "core/contract/attention.h"
#include "cuda/attention/rule_walk.h"

/// The forward pass of the attention rules other than softmax. Each rule defines a walker, the
/// state of one query while its keys are processed (rule_walk.h). A thread block has 64 queries. It
/// processes the keys from the last to the first, 32 at a time, until all queries are finished. Two
/// threads per query process 16 of these 32 keys each.
namespace longhand::cuda::walks {

struct ForwardTask {
  ScoresView scores;
  HeadsView v = {}, y = {};
  HeadsView residue = {};  // rounding errors of y, for rules that save them; may be empty
  std::int32_t key_slices = 1, value_slices = 1;
};
inline ForwardTask forward_task(const Attention& op) {
  return {.scores = view(op.scores),
          .v = view(op.v),
          .y = view(op.y),
          .key_slices = slices(op.scores.q.width, slice),
          .value_slices = slices(op.v.width, slice)};
}

template <class Product>
constexpr std::size_t forward_bytes =
    sizeof(typename Product::Element) *
    (tile_entries<Product> + 2 * step_entries<Product>)+sizeof(float) * walk_floats;

/// Multiplies row r of `out` by factors[r], for this warp's rows of the tile.
template <int n>
__device__ __forceinline__ void scale_rows(float (&out)[n][4], const float* factors) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float factor = factors[16 * warp_index() + lane_row() + 8 * i];
#pragma unroll
    for (int c = 0; c < n; ++c) {
      out[c][2 * i] *= factor;
      out[c][2 * i + 1] *= factor;
    }
  }
}

/// Stores this warp's rows of y = factor * out. If task.residue is set, also stores there the
/// errors that result from rounding these rows of y to bf16. `rows` is a buffer in shared memory
/// for the warp's rows. `row` is the row of the warp's first query in y.
template <class Product, int n>
__device__ __forceinline__ void store_with_residue(typename Product::Element* rows,
                                                   const ForwardTask& task, std::int64_t row,
                                                   int count, int head, int part,
                                                   float (&out)[1][n][4], float (&factor)[1][2]) {
  store_rows<Product>(rows, task.y, row, count, head, part * slice, out, factor);
  if (!task.residue) return;
#pragma unroll
  for (int c = 0; c < n; ++c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float y = out[0][c][i] * factor[0][i / 2];
      out[0][c][i] = y - to_float(from_float<bf16>(y));
    }
  }
  factor[0][0] = factor[0][1] = 1;
  store_rows<Product>(rows, task.residue, row, count, head, part * slice, out, factor);
}

template <class Product, class Walker>
__global__ void __launch_bounds__(attention_threads, 3)
    forward_kernel(ForwardTask task, typename Walker::Tensors tensors) {
  using Element = typename Product::Element;
  constexpr int n = slice / 8, m = steps / 8;
  // For each query, the factor by which its row of the output `out` must be multiplied. The query's
  // state (`walker`) returns this factor from weigh() for each block of keys, and from share()
  // after the last key.
  __shared__ float factors[tile_rows];
  Element* const q = shared_memory<Element>();
  Element *const k = q + tile_entries<Product>, *const v = k + step_entries<Product>;
  auto* const s = reinterpret_cast<float*>(v + step_entries<Product>);

  const ScoresView& scores = task.scores;
  const int head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const int key_head = head / scores.group;
  const BlockQueries own = own_queries(scores.segments);
  const SegmentView& at = own.at;
  const int first = own.first, rows = own.rows, start = own.start;
  if (rows <= 0) return;
  const int thread = static_cast<int>(threadIdx.x), row = 16 * warp_index();
  const bool busy = row < rows;
  // query: index of this thread's query in the tile. run_begin: index, among the keys of a step, of
  // the first of the 16 keys that this thread processes.
  const int query = thread / query_lanes, run_begin = run_keys * run_index<query_lanes>();
  float* const of_run = s + run_begin * walk_stride + query;
  const std::int64_t entry = (at.query + first + query) * scores.heads + head;

  Walker walker;
  walker.find(scores, at, first + query, head);
  if (walker.there) walker.start(scores, tensors, entry);
  float out[1][n][4];
  clear(out[0]);
  const auto bring_queries = [&](int of) {
    fetch<Product, tile_rows>(q, scores.q, at.query + first, rows, head, of);
  };
  if (task.key_slices == 1) bring_queries(0);
  const int first_key = scores.first_key(start);
  bool goes_on = true;
  for (int end = start + rows; end > first_key && goes_on;) {
    const int begin = (end - 1) / steps * steps, count = end - begin;
    float p[m][4];
    dots_of_slices<Product>(p, q, k, task.key_slices, busy, bring_queries, [&](int of) {
      fetch<Product, steps>(k, scores.k, at.key + begin, count, key_head, of);
      if (of == 0) fetch<Product, steps>(v, task.v, at.key + begin, count, key_head, part);
    });
    put_tile(s, 1, walk_stride, p);
    __syncthreads();
    Run run = walker.run_of(scores, begin + run_begin, count - run_begin, of_run, walk_stride);
    if constexpr (Walker::normalized) {
      const float factor = walker.template weigh<query_lanes>(run);
      if (run_begin == 0) factors[query] = factor;
    } else {
      walker.template weigh<query_lanes>(run);
    }
#pragma unroll
    for (int i = 0; i < run_keys; ++i) of_run[i * walk_stride] = run.scores[i];
    goes_on = __syncthreads_or(walker.there && !walker.finished());
    if (busy) {
      get_tile(s, 1, walk_stride, p);
      if constexpr (Walker::normalized) scale_rows(out[0], factors);
      mix<Product>(out[0], p, v);
    }
    end = begin;
  }

  if (part == 0 && run_begin == 0 && walker.there) walker.save(tensors, entry);
  float shares[1][2] = {{1, 1}};
  if constexpr (Walker::normalized) {
    __syncthreads();
    if (run_begin == 0) factors[query] = walker.share();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i) shares[0][i] = factors[row + lane_row() + 8 * i];
  }
  if (!busy) return;
  store_with_residue<Product>(q + row * Product::stride(slice), task, at.query + first + row,
                              rows - row, head, part, out, shares);
}

/// Computes an Attention op. Walker is the type that applies the op's rule: the state of one query
/// while its keys are processed (rule_walk.h).
template <class Walker>
void attend_by_walk(CudaBackend& backend, const Attention& op, const ForwardTask& task,
                    const typename Walker::Tensors& tensors) {
  const Scores& scores = op.scores;
  const std::int64_t slots = tile_slots(scores.q.data.rows(), scores.queries.count(), tile_rows);
  choose_product<Walker>(scores, backend.math(scores.math), [&](auto product) {
    using Kind = decltype(product);
    launch(backend.stream(), {slots, scores.q.heads, task.value_slices}, attention_threads,
           forward_bytes<Kind>, &forward_kernel<Kind, Walker>, task, tensors);
  });
}

}  // namespace longhand::cuda::walks
