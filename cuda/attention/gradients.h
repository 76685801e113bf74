#pragma once

#include "cuda/attention/run.h"

namespace longhand::cuda {

/// The gradients of q, k, v and beta from P of log_sum, as in AttentionBackward. With `gamma`, as
/// in ChacalBackward: dy stands for W, row_dots for W_i . y_i, and the values read off the diagonal
/// are (1 - g) v + g y.
struct GradientTask {
  ScoresView scores;
  HeadsView v = {}, y = {}, dy = {};
  const float *log_sum = nullptr, *row_dots = nullptr;
  const float* gamma = nullptr;
  std::int32_t gamma_step = 0;
  HeadsView dq = {}, dk = {}, dv = {};
  float* dbeta = nullptr;  // a part for each slot, head and slice of the queries
  std::int32_t key_slices = 1, value_slices = 1;
};

/// What both mechanisms do once dy (or W) and its dots are there.
void attention_gradients(CudaBackend& backend, Math math, const Scores& scores,
                         const HeadsTarget& dq, const HeadsTarget& dk, const HeadsTarget& dv,
                         const Target& dbeta, GradientTask task);

}  // namespace longhand::cuda
