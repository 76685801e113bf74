#pragma once

#include <functional>
#include <memory>

#include "core/backend.h"
#include "nn/batch.h"
#include "nn/model.h"
#include "nn/training/gradient_exchange.h"
#include "nn/training/optimizer.h"

namespace longhand::nn {

/// Peak memory of a training in bytes, by purpose.
struct MemoryEstimate {
  double parameters = 0;
  double gradients = 0;
  double moments = 0;
  double panels = 0;  // packed weights that matrix products cache between batches
  // Activations of one batch of a step, their gradients, and the batch itself.
  double activations = 0;

  double total() const { return parameters + gradients + moments + panels + activations; }
};

/// How a step is distributed over ranks and batches.
struct StepSpread {
  std::int64_t ranks = 1;
  std::int64_t parts = 1, accumulation = 1;  // number of parts of a step, and of batches per part
  Sharing sharing = Sharing::nothing;
  std::size_t bucket_bytes = GradientExchange::bucket_bytes;
  bool keeps_panels = false;  // true for the cpu backend, which caches packed panels
};

/// Makes the optimizer of a model. The second argument is the communicator of the ranks that share
/// the optimizer's state, or null if each rank stores the whole state.
using OptimizerOf = std::function<std::unique_ptr<Optimizer>(const Model&, Communicator*)>;

/// Estimates the memory that one rank needs for a step with this batch and optimizer (default:
/// Adam). The step runs on a
/// backend that computes nothing (core/accounting_backend.h). The model's own code makes the
/// allocations, so the estimate is valid for any model and for frozen parameters. `options` are
/// those of the real backend. With one batch on one rank, the estimate differs from the allocator's
/// peak by at most 0.1%; tests/memory_estimate_test.cpp also tests other cases. Scratch memory of
/// matrix products, batches on the host, and evaluation are not included.
///
/// `times` is the actual batch size divided by the size of `batch`; the peak is extrapolated
/// linearly from one and two copies of the batch.
MemoryEstimate estimate_training(const std::function<std::unique_ptr<Model>(Backend&)>& make_model,
                                 const BackendOptions& options, const Batch& batch,
                                 double times = 1, const OptimizerOf& optimizer_of = {},
                                 const StepSpread& spread = {});

}  // namespace longhand::nn
