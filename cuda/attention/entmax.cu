#include "core/rules/entmax.h"

#include <limits>

#include "cuda/attention/inspect.h"
#include "cuda/attention/rule_forward.h"
#include "cuda/attention/rule_gradients.h"

/// Entmax (core/contract/attention.h). Other rules need only one pass over the keys in the forward
/// pass. Entmax needs several, because the threshold of a row depends on all its scores. A block
/// first searches for the thresholds of its rows, and stores the scores that may exceed them. If
/// there is not enough memory for these scores, the block computes all scores again in each step of
/// the search. Then it computes the weights from the thresholds. The backward pass computes
///   dS_ij = w_ij (dP_ij - D_i),
/// where w_ij is the square root of the weight P_ij, and D_i is the mean of dP_ij over j, weighted
/// by w_ij. If one key has all of a row's weight, D_i equals dP_ij of this key. The kernels compute
/// D with the same instructions as dP, in the same order, so that dP_ij - D_i is then exactly 0.
namespace longhand::cuda {

using namespace walks;
using rules::Entmax;

namespace {

// most_candidates: number of candidates (scores that may exceed the threshold) that a thread can
// store. candidate_floats: size of the candidates of a thread block in shared memory, in floats.
constexpr int most_candidates = 28;
constexpr int candidate_floats = most_candidates * attention_threads;

/// The state of one query in the forward pass. The keys of a query are divided among its lanes. x
/// is half of the score of a key. A key that may have a positive weight is a candidate. Each lane
/// stores a list of the x of its candidates.
struct EntmaxQuery : Query<Entmax> {
  // A lower bound of the threshold at which the weights of the keys processed so far sum to 1.
  float threshold = -std::numeric_limits<float>::max();
  // Sums over the weights that keys have at this threshold. roots: the sum of the square roots of
  // the weights. squares: the sum of the weights, which are the squares of these roots. number: the
  // number of positive weights.
  float roots = 0, squares = 0, number = 0;
  // This lane's list of candidates, in shared memory: the halves of scores that may exceed the
  // threshold. Entry n of the list is candidates[n * attention_threads].
  float* candidates = nullptr;
  int count = 0;
  bool complete = true;  // false if the list had no room for all candidates

  __device__ void add_up(float x) {
    const float w = Entmax::weight(x, threshold);
    roots += w;
    squares += w * w;
    number += w > 0 ? 1.0f : 0.0f;
  }
  __device__ void add_up(const Run& run) {
#pragma unroll
    for (int n = 0; n < run_keys; ++n) {
      if (run.sees(n)) add_up(run.scores[n]);
    }
  }
  __device__ void add_up_candidates() {
    for (int n = 0; n < count; ++n) add_up(candidates[n * attention_threads]);
  }
  __device__ void clear_sums() { roots = squares = number = 0; }
  /// Replaces each lane's `roots`, `squares` and `number` by the sums over all lanes of the query.
  /// Returns the threshold after one more step of Newton's method.
  __device__ float step() {
    roots = sum_of_runs<query_lanes>(roots);
    squares = sum_of_runs<query_lanes>(squares);
    number = sum_of_runs<query_lanes>(number);
    return there && roots > 0 ? Entmax::step(threshold, roots, squares) : threshold;
  }

  /// Adds a run of keys to the candidates. The largest weight is at most 1, so the threshold is at
  /// least the largest x minus 1.
  __device__ void collect(const Run& run) {
    float top = -std::numeric_limits<float>::max();
#pragma unroll
    for (int n = 0; n < run_keys; ++n) {
      if (run.sees(n)) top = fmaxf(top, run.scores[n]);
    }
    threshold = fmaxf(threshold, largest_of_runs<query_lanes>(top) - 1);
    if (__any_sync(full_warp, complete && count + run_keys > most_candidates)) drop_candidates();
#pragma unroll
    for (int n = 0; n < run_keys; ++n) {
      if (!run.sees(n) || run.scores[n] <= threshold) continue;
      complete = complete && count < most_candidates;
      if (count < most_candidates) candidates[count++ * attention_threads] = run.scores[n];
    }
  }
  /// Raises the threshold until the weights of the candidates found so far sum to 1. Further keys
  /// can only raise it more, so candidates that do not exceed it cannot have a positive weight, and
  /// they are dropped. All lanes of the warp call this function.
  __device__ void drop_candidates() {
    bool moves = true;
    for (int i = 0; i < Entmax::most_steps && moves; ++i) {
      clear_sums();
      add_up_candidates();
      const float next = step();
      moves = __any_sync(full_warp, next > threshold);
      threshold = next;
    }
    int kept = 0;
    for (int n = 0; n < count; ++n) {
      const float x = candidates[n * attention_threads];
      if (x > threshold) candidates[kept++ * attention_threads] = x;
    }
    count = kept;
  }

  /// Replaces scores by w, the square roots of the weights.
  __device__ void weigh(Run& run) const {
#pragma unroll
    for (int n = 0; n < run_keys; ++n) {
      float& x = run.scores[n];
      x = run.sees(n) ? Entmax::weight(x, threshold) : 0.0f;
      if (number == 1 && x > 0) x = 1;  // the only key with a weight: its weight is exactly 1
    }
  }
};

/// Searches for the threshold at which the weights of this thread's query sum to 1. Newton's method
/// starts below this threshold. each_block(body) calls body(run) for each block of keys, with this
/// thread's run of keys. The first pass over the keys collects candidates. Further passes are
/// needed only if a query of the block has more candidates than fit in its lists.
template <class EachBlock>
__device__ void find_threshold(EntmaxQuery& query, const EachBlock& each_block) {
  each_block([&](const Run& run) { query.collect(run); });
  const bool complete = !__syncthreads_or(!query.complete);
  bool moves = true;
  for (int i = 0; i < Entmax::most_steps && moves; ++i) {
    query.clear_sums();
    if (complete) {
      query.add_up_candidates();
    } else {
      each_block([&](const Run& run) { query.add_up(run); });
    }
    const float next = query.step();
    moves = __syncthreads_or(next > query.threshold);
    if (moves) query.threshold = next;
  }
  if (query.number == 1) query.roots = 1;
}

template <class Product>
constexpr std::size_t entmax_bytes = sizeof(typename Product::Element) *
                                     (tile_entries<Product> + step_entries<Product>)+sizeof(float) *
                                     (candidate_floats + walk_floats);

/// Computes y and the tensors that entmax saves for the backward pass, `threshold` and `root_mean`.
/// These two tensors may be empty.
template <class Product>
__global__ void __launch_bounds__(attention_threads, 2)
    entmax_kernel(ForwardTask task, float* threshold, HeadsView root_mean) {
  using Element = typename Product::Element;
  constexpr int n = slice / 8, m = steps / 8;
  __shared__ float shares[tile_rows];
  // The lists of candidates are no longer needed when the values v are loaded, so both are stored
  // at the same place.
  static_assert(sizeof(Element) * step_entries<Product> <= sizeof(float) * candidate_floats);
  Element* const q = shared_memory<Element>();
  Element* const k = q + tile_entries<Product>;
  Element* const v = k + step_entries<Product>;
  auto* const candidates = reinterpret_cast<float*>(v);
  float* const s = candidates + candidate_floats;

  const ScoresView& scores = task.scores;
  const int head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const int key_head = head / scores.group;
  const BlockQueries own = own_queries(scores.segments);
  const SegmentView& at = own.at;
  const int first = own.first, rows = own.rows, start = own.start;
  if (rows <= 0) return;
  const int thread = static_cast<int>(threadIdx.x), row = 16 * warp_index();
  const bool busy = row < rows;
  // own_query: index of this thread's query in the tile. run_begin: index, among the keys of a
  // step, of the first of the 16 keys that this thread processes.
  const int own_query = thread / query_lanes, run_begin = run_keys * run_index<query_lanes>();
  float* const of_run = s + run_begin * walk_stride + own_query;

  EntmaxQuery query;
  query.find(scores, at, first + own_query, head);
  query.candidates = candidates + thread;
  const auto bring_queries = [&](int of) {
    fetch<Product, tile_rows>(q, scores.q, at.query + first, rows, head, of);
  };
  if (task.key_slices == 1) bring_queries(0);
  // Calls body(run) for each block of keys, with this thread's run of keys. If `mixed` is true, the
  // values of the keys are loaded too.
  const auto each_block = [&](bool mixed, const auto& body) {
    for (int begin = scores.first_key(start) / steps * steps; begin < start + rows;
         begin += steps) {
      const int count = min(steps, start + rows - begin);
      float x[m][4];
      dots_of_slices<Product>(x, q, k, task.key_slices, busy, bring_queries, [&](int of) {
        fetch<Product, steps>(k, scores.k, at.key + begin, count, key_head, of);
        if (mixed && of == 0) {
          fetch<Product, steps>(v, task.v, at.key + begin, count, key_head, part);
        }
      });
      put_tile(s, 1, walk_stride, x);
      __syncthreads();
      body(query.run_of(scores, begin + run_begin, count - run_begin, of_run, walk_stride));
    }
  };
  find_threshold(query, [&](const auto& body) { each_block(false, body); });

  float out[1][n][4], mean[1][n][4];
  clear(out[0]);
  clear(mean[0]);
  each_block(true, [&](Run run) {
    query.weigh(run);
#pragma unroll
    for (int i = 0; i < run_keys; ++i) of_run[i * walk_stride] = run.scores[i];
    __syncthreads();
    if (!busy) return;
    float x[m][4];
    get_tile(s, 1, walk_stride, x);
    if (root_mean) mix<Product>(mean[0], x, v);
#pragma unroll
    for (int c = 0; c < m; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) x[c][e] *= x[c][e];
    }
    mix<Product>(out[0], x, v);
  });

  __syncthreads();
  if (run_begin == 0) {
    shares[own_query] = query.there ? 1.0f / query.roots : 0.0f;
    if (threshold && part == 0 && query.there) {
      threshold[(at.query + first + own_query) * scores.heads + head] = query.threshold;
    }
  }
  __syncthreads();
  if (!busy) return;
  float factors[1][2] = {{1, 1}};
  Element* const own_rows = q + row * Product::stride(slice);
  const std::int64_t first_row = at.query + first + row;
  store_rows<Product>(own_rows, task.y, first_row, rows - row, head, part * slice, out, factors);
  if (!root_mean) return;
#pragma unroll
  for (int i = 0; i < 2; ++i) factors[0][i] = shares[row + lane_row() + 8 * i];
  store_rows<Product>(own_rows, root_mean, first_row, rows - row, head, part * slice, mean,
                      factors);
}

/// Computes D_i = dy_i . root_mean_i, where root_mean_i is the mean of the values, weighted by the
/// square roots of the weights of query i. The instructions and the order of the sums are those
/// with which dP is computed, so that dP - D can be exactly 0. Stores D in `dots`, [rows, heads].
template <class Product>
__global__ void __launch_bounds__(attention_threads)
    mean_dots(HeadsView dy, HeadsView root_mean, std::int64_t all_rows, int heads, int value_slices,
              float* dots) {
  using Element = typename Product::Element;
  constexpr int m = tile_rows / 8;
  Element* const left = shared_memory<Element>();
  Element* const right = left + tile_entries<Product>;
  const int head = static_cast<int>(blockIdx.y);
  const std::int64_t first = std::int64_t{blockIdx.x} * tile_rows;
  const auto rows = static_cast<int>(min(std::int64_t{tile_rows}, all_rows - first));
  const bool busy = 16 * warp_index() < rows;
  float x[m][4];
  const auto bring_dy = [&](int of) { fetch<Product, tile_rows>(left, dy, first, rows, head, of); };
  if (value_slices == 1) bring_dy(0);
  dots_of_slices<Product>(x, left, right, value_slices, busy, bring_dy, [&](int of) {
    fetch<Product, tile_rows>(right, root_mean, first, rows, head, of);
  });
#pragma unroll
  for (int c = 0; c < m; ++c) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int r = 16 * warp_index() + lane_row() + 8 * (e / 2);
      const int column = 8 * c + 2 * lane_column() + e % 2;
      if (r == column && r < rows) dots[(first + r) * heads + head] = x[c][e];
    }
  }
}

struct EntmaxWalker : Query<Entmax> {
  struct Tensors {
    // threshold: saved by the forward pass; row_dots: the results of mean_dots()
    const float *threshold, *row_dots;
  };
  float threshold = 0, d = 0;

  __device__ void start_gradients(const Tensors& tensors, std::int64_t entry) {
    threshold = tensors.threshold[entry];
    d = tensors.row_dots[entry];
  }
  __device__ Gradient gradient(float x, float dp) const {
    const float w = Entmax::weight(x, threshold);
    return {w * w, w * (dp - d)};
  }
};

struct EntmaxWeights {
  static constexpr bool own_key = Entmax::own_key;
  __device__ void weigh(const ScoreRow& row) const {
    if (lane_index() > 0) return;
    for (int j = row.first; j < row.end; ++j) row.at[j] *= Entmax::unit;
    const float t = Entmax::threshold(row.at + row.first, row.end - row.first);
    for (int j = row.first; j < row.end; ++j) {
      const float w = Entmax::weight(row.at[j], t);
      row.at[j] = w * w;
    }
  }
};

}  // namespace

void run(CudaBackend& backend, const Attention& op, const EntmaxRule& rule) {
  const Scores& scores = op.scores;
  const ForwardTask task = forward_task(op);
  const std::int64_t slots = tile_slots(scores.q.data.rows(), scores.queries.count(), tile_rows);
  choose_product<EntmaxQuery>(scores, backend.math(scores.math), [&](auto product) {
    using Kind = decltype(product);
    launch(backend.stream(), {slots, scores.q.heads, task.value_slices}, attention_threads,
           entmax_bytes<Kind>, &entmax_kernel<Kind>, task, mutable_pointer(rule.threshold),
           view(rule.root_mean));
  });
}

void run(CudaBackend& backend, const AttentionBackward& op, const EntmaxGradient& rule) {
  const Scores& scores = op.scores;
  const std::int64_t rows = op.dy.data.rows(), heads = op.dy.heads;
  const Tensor dots(backend, {std::max<std::int64_t>(1, rows), heads}, DType::f32);
  choose_product<EntmaxWalker>(scores, backend.math(scores.math), [&](auto product) {
    using Kind = decltype(product);
    launch(backend.stream(), {(rows + tile_rows - 1) / tile_rows, heads}, attention_threads,
           2 * sizeof(typename Kind::Element) * tile_entries<Kind>, &mean_dots<Kind>, view(op.dy),
           view(rule.root_mean), rows, static_cast<int>(heads), slices(op.v.width, slice),
           dots.data<float>());
  });
  gradients_by_walk<EntmaxWalker>(
      backend, op, {.threshold = pointer(rule.threshold), .row_dots = dots.data<float>()});
}

void run(CudaBackend& backend, const AttentionWeights& op, const EntmaxRule&) {
  write_weights(backend, op, EntmaxWeights{});
}

}  // namespace longhand::cuda
