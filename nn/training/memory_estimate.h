#pragma once

#include <functional>
#include <memory>

#include "core/backend.h"
#include "nn/batch.h"
#include "nn/model.h"
#include "nn/training/gradient_exchange.h"
#include "nn/training/optimizer.h"

namespace longhand::nn {

/// Bytes of a training at its peak, by purpose.
struct MemoryEstimate {
  double parameters = 0;
  double gradients = 0;
  double moments = 0;  // optimizer moments
  double panels = 0;   // packed weights that matrix products keep between batches
  // activations of one batch of a step, their gradients, and the batch itself
  double activations = 0;

  double total() const { return parameters + gradients + moments + panels + activations; }
};

/// The distribution of a step over ranks and batches. The estimate is for one rank.
struct StepSpread {
  std::int64_t ranks = 1;
  std::int64_t parts = 1, accumulation = 1;  // see TrainerOptions
  Sharing sharing = Sharing::nothing;
  std::size_t bucket_bytes = GradientExchange::bucket_bytes;
  bool keeps_panels = false;  // true on the cpu backend
};

/// Estimates the memory of a step with this batch and Adam by taking the step on a backend that
/// computes nothing (core/accounting_backend.h). The model's own code allocates, so the estimate
/// holds for any model and for frozen parameters. `options` are those of the real backend. For one
/// batch on one rank the estimate equals the allocator's peak to a thousandth
/// (tests/memory_estimate_test.cpp also tests the others). It does not include scratch memory of
/// matrix products, batches on the host, or evaluation.
///
/// `times`: actual batch size / size of this batch; the peak is extrapolated linearly from one and
/// two copies of the batch.
MemoryEstimate estimate_training(const std::function<std::unique_ptr<Model>(Backend&)>& make_model,
                                 const BackendOptions& options, const Batch& batch,
                                 double times = 1, const AdamOptions& adam = {},
                                 const StepSpread& spread = {});

}  // namespace longhand::nn
