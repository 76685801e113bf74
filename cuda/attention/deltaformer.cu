#include "core/contract/deltaformer.h"
#include "cuda/attention/chain_backward.h"
#include "cuda/attention/chain_forward.h"

/// DeltaFormer (core/contract/deltaformer.h). Its triangular systems are solved by the kernels that
/// also solve ChaCAL's systems (attend.h, chain_backward.h). For DeltaFormer, these kernels use a
/// gain for each query, a causal mask that also hides the query's own key, and values that differ
/// from ChaCAL's. The gradients of q and k are computed by the kernels of softmax attention
/// (gradients.h).
namespace longhand::cuda {
namespace {

/// The arguments of DeltaFormer that softmax attention has too.
struct Chained {
  Scores scores;
  Heads v, y;
};

template <class Op>
Scores scores_of(const Op& op) {
  return {.q = op.q,
          .k = op.k,
          .queries = op.queries,
          .keys = op.keys,
          .scale = op.scale,
          .math = op.math};
}

}  // namespace

void run(CudaBackend& backend, const DeltaFormer& op) {
  if (op.q.data.rows() == 0) return;
  const Chained chained{scores_of(op), op.v, op.y};
  AttentionTask chain = attention_task(chained, {}, op.log_denominator);
  chain.earlier = view(op.earlier);
  chain.gain = op.gain.data<float>();
  if (op.read) chain.read = view(op.read);
  visit_forward(backend.math(op.math), chained.scores, chain,
                [&](auto product, auto size, auto, const AttentionTask& task) {
                  launch_chain<decltype(product), decltype(size)::value, Walk::deltaformer, false>(
                      backend, chained.scores, task);
                });
}

void run(CudaBackend& backend, const DeltaFormerBackward& op) {
  const Scores scores = scores_of(op);
  const std::int64_t rows = op.q.data.rows(), heads = op.q.heads;
  const Tensor w(backend, {rows, heads * op.y.width}, DType::f32);
  const Heads w_heads{w, 0, heads, op.y.width};
  const float *const gain = op.gain.data<float>(), *const log_sum =
                                                       op.log_denominator.data<float>();
  visit_product(
      backend.math(op.math), op.q.data.dtype(), std::max(op.q.width, op.y.width),
      [&](auto product, auto size) {
        launch_chain_backward<decltype(product), decltype(size)::value, Chain::deltaformer>(
            backend,
            {.scores = view(scores),
             .dy = view(op.dy),
             .w = view(w_heads),
             .log_sum = log_sum,
             .gain = gain,
             .dv = view(op.dv)},
            tile_slots(rows, op.queries.count(), tile_rows));
      });

  // dS_ij is P_ij g_i (dP_ij - D_i), where g_i is the gain of row i and dP_ij = W_i . y_j.
  // D_i = W_i . z_i must equal the sum of P_ij dP_ij over j, so row_dots() rounds W as the products
  // for dP do. D_i is also the gradient of g_i.
  const Tensor dots = row_dots(backend, rounding_of(backend, scores), w_heads, op.read);
  if (op.dgain) add_slices(backend, dots.data<float>(), 1, op.dgain);
  ScoresView earlier_keys = view(scores);
  earlier_keys.own_key = false;
  attention_gradients(backend, backend.math(op.math), scores, op.dq, op.dk, {}, {}, {}, {},
                      {.scores = earlier_keys,
                       .v = view(op.y),
                       .dy = view(w_heads),
                       .log_sum = log_sum,
                       .row_dots = dots.data<float>(),
                       .gain = gain});
}

}  // namespace longhand::cuda
