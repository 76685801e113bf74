#include "core/contract/chacal.h"
#include "cuda/attention/chain_backward.h"
#include "cuda/attention/chain_forward.h"

namespace longhand::cuda {

void run(CudaBackend& backend, const Chacal& op) {
  if (op.scores.q.data.rows() == 0) return;
  AttentionTask chain = attention_task(op, op.sink, op.log_denominator);
  chain.earlier = view(op.earlier);
  chain.gamma = op.gamma.data<float>();
  chain.gamma_step = op.gamma.size() == 1 ? 0 : 1;
  visit_forward(backend.math(op.scores.math), op.scores, chain,
                [&](auto product, auto size, auto shift, const AttentionTask& task) {
                  launch_chain<decltype(product), decltype(size)::value, Walk::chacal,
                               decltype(shift)::value>(backend, op.scores, task);
                });
}

void run(CudaBackend& backend, const ChacalBackward& op) {
  const Scores& scores = op.scores;
  const std::int64_t rows = scores.q.data.rows(), count = scores.queries.count();
  const std::int64_t heads = scores.q.heads, v_width = op.v.width;
  const Tensor w(backend, {rows, heads * v_width}, DType::f32);
  const Heads w_heads{w, 0, heads, v_width};
  const std::int32_t gamma_step = op.gamma.size() == 1 ? 0 : 1;
  const float *const gamma = op.gamma.data<float>(), *const log_sum =
                                                         op.log_denominator.data<float>();

  visit_product(backend.math(scores.math), scores.q.data.dtype(), std::max(scores.q.width, v_width),
                [&](auto product, auto size) {
                  constexpr int slice = decltype(size)::value;
                  const std::int64_t slots = tile_slots(rows, count, tile_rows);
                  const std::int64_t parts = slices(v_width, slice);
                  const Tensor dgamma(backend, {std::max<std::int64_t>(1, slots * heads * parts)},
                                      DType::f32);
                  // Some tile slots (see tile_slots()) have no tile, so no block writes their
                  // partial sums of dgamma. These must be 0.
                  backend.stream().zero(dgamma.address(), dgamma.bytes());
                  launch_chain_backward<decltype(product), slice, Chain::chacal>(
                      backend,
                      {.scores = view(scores),
                       .dy = view(op.dy),
                       .w = view(w_heads),
                       .log_sum = log_sum,
                       .v = view(op.v),
                       .y = view(op.y),
                       .gamma = gamma,
                       .gamma_step = gamma_step,
                       .dgamma = dgamma.data<float>()},
                      slots);
                  if (!op.dgamma) return;
                  if (gamma_step == 0) {
                    add_up(backend.stream(), dgamma.data<float>(), slots * heads, parts, op.dgamma);
                  } else {
                    add_up(backend.stream(), dgamma.data<float>(), slots, parts, op.dgamma);
                  }
                });

  // dS_ij is P_ij (dP_ij - D_i). dP_ij is the product of W_i, the solution of ChaCAL's backward
  // system, with the value of key j. D_i = W_i . y_i must equal the sum of P_ij dP_ij over j. W is
  // stored in f32, but the products for dP round it, so row_dots() rounds it in the same way.
  const Tensor dots = row_dots(backend, rounding_of(backend, scores), w_heads, op.y);
  attention_gradients(backend, backend.math(scores.math), scores, op.dq, op.dk, op.dv, op.dscores,
                      op.sink, op.dsink,
                      {.scores = view(scores),
                       .v = view(op.v),
                       .y = view(op.y),
                       .dy = view(w_heads),
                       .log_sum = log_sum,
                       .row_dots = dots.data<float>(),
                       .gamma = gamma,
                       .gamma_step = gamma_step});
}

}  // namespace longhand::cuda
