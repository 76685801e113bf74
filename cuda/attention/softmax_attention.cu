#include "core/rules/softmax.h"
#include "cuda/attention/attend.h"
#include "cuda/attention/gradients.h"
#include "cuda/attention/inspect.h"
#include "cuda/attention/parts.h"

/// Softmax attention (core/contract/attention.h). This file chooses and launches the kernels. Their
/// code is in attend.h and gradients.h, which ChaCAL shares, and in parts.cu.
namespace longhand::cuda {
namespace {

/// Maximum number of resident blocks per multiprocessor for which the compiler budgets registers.
/// More blocks would make a thread spill more than a few registers.
template <class Product, int slice, int bands, bool shifted>
constexpr int most_residents() {
  const int element = sizeof(typename Product::Element);
  if (slice == 128) return 4 - bands - element / 4;
  if (bands == 1) return 4;
  const bool spills_on_100 = slice == 32 && element == 4;
  return shifted ? 2 : 3 - blocks_on(100, spills_on_100 ? 1 : 0);
}

/// Each thread block computes one tile of queries of one head. The tiles whose queries see the most
/// keys start first, so that none of them runs alone at the end. The blocks for the heads of one
/// tile are adjacent in the grid.
template <class Product, int slice, int bands, bool shifted>
__global__ void __launch_bounds__(attention_threads,
                                  budgeted_blocks(most_residents<Product, slice, bands, shifted>(),
                                                  forward_bytes<Product, slice, bands>))
    attention_kernel(AttentionTask task) {
  const ScoresView& scores = task.scores;
  const std::int64_t slot = std::int64_t{gridDim.z - blockIdx.z} * gridDim.y - 1 - blockIdx.y;
  const SegmentsView& segments = scores.segments;
  const Tile tile = tile_at(segments.query_begin, segments.count, bands * tile_rows, slot);
  if (tile.first >= segments.query_length[tile.segment]) return;
  attend<Product, slice, bands, Walk::whole, shifted>(task, tile, static_cast<int>(blockIdx.x));
}

/// Maximum number of bands of 16 queries per warp. If the maximum is 2, run() uses two bands for
/// long sequences. The maximum is 1 for slices of 128 columns with shifts (Scores::decay), because
/// two bands would then need more registers than a thread can have.
template <class Product, int slice, bool shifted>
constexpr int most_bands = std::is_same_v<Product, ExactProduct> ? 1
                           : slice == 128 && (shifted || sizeof(typename Product::Element) == 4)
                               ? 1
                               : 2;

struct SoftmaxWeights {
  static constexpr bool own_key = rules::Softmax::own_key;
  const float* sink;  // one sink (a score without a value) per head, or null
  __device__ void weigh(const ScoreRow& row) const {
    float top = sink ? sink[row.head] : -INFINITY;
    for (int j = row.first; j < row.end; ++j) top = fmaxf(top, row.at[j]);
    __syncwarp();  // all lanes have read the scores, which are now overwritten
    float sum = 0;
    for (int j = row.first + lane_index(); j < row.end; j += warp_size) {
      row.at[j] = expf(row.at[j] - top);
      sum += row.at[j];
    }
    sum = warp_sum(sum) + (sink ? expf(sink[row.head] - top) : 0.0f);
    for (int j = row.first + lane_index(); j < row.end; j += warp_size) row.at[j] /= sum;
  }
};

}  // namespace

void run(CudaBackend& backend, const Attention& op, const SoftmaxRule& rule) {
  const std::int64_t rows = op.scores.q.data.rows(), count = op.scores.queries.count();
  if (const int parts = key_parts(op); parts > 1) return attend_in_parts(backend, op, rule, parts);
  const AttentionTask shared = attention_task(op, rule.sink, rule.log_denominator);
  if (is_wide(op.scores.q.width, op.v.width)) return attend_wide(backend, op.scores, shared);
  visit_forward(
      backend.math(op.scores.math), op.scores, shared,
      [&](auto product, auto size, auto shift, const AttentionTask& task) {
        using Kind = decltype(product);
        constexpr int slice = decltype(size)::value;
        constexpr bool shifted = decltype(shift)::value;
        const auto with_bands = [&](auto number) {
          constexpr int bands = decltype(number)::value;
          const std::int64_t slots = tile_slots(rows, count, bands * tile_rows);
          const std::int64_t most = 1 << 15, layers = slots / most + 1;
          launch(backend.stream(), {op.scores.q.heads, (slots + layers - 1) / layers, layers},
                 attention_threads, forward_bytes<Kind, slice, bands>,
                 &attention_kernel<Kind, slice, bands, shifted>, task);
        };
        const std::int64_t blocks = tile_slots(rows, count, 2 * tile_rows) * op.scores.q.heads;
        if constexpr (most_bands<Kind, slice, shifted> == 2) {
          if (rows >= 256 * count && 2 * blocks >= backend.device().multiprocessors &&
              worth_more_memory(backend.device(), forward_bytes<Kind, slice, 2>,
                                forward_bytes<Kind, slice, 1>)) {
            return with_bands(std::integral_constant<int, 2>{});
          }
        }
        with_bands(std::integral_constant<int, 1>{});
      });
}

void run(CudaBackend& backend, const AttentionBackward& op, const SoftmaxGradient& rule) {
  const Math math = backend.math(op.scores.math);
  const Tensor dots = row_dots(backend, math, op.dy, rule.y);
  attention_gradients(backend, math, op.scores, op.dq, op.dk, op.dv, op.dscores, rule.sink,
                      rule.dsink,
                      {.scores = view(op.scores),
                       .v = view(op.v),
                       .dy = view(op.dy),
                       .log_sum = rule.log_denominator.data<float>(),
                       .row_dots = dots.data<float>()});
}

void run(CudaBackend& backend, const AttentionWeights& op, const SoftmaxRule& rule) {
  write_weights(backend, op, SoftmaxWeights{pointer(rule.sink)});
}

}  // namespace longhand::cuda
