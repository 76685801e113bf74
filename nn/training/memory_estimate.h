#pragma once

#include <functional>
#include <memory>

#include "core/backend.h"
#include "nn/batch.h"
#include "nn/model.h"
#include "nn/training/gradient_exchange.h"
#include "nn/training/optimizer.h"

namespace longhand::nn {

/// Bytes that training takes at its peak, by what they hold.
struct MemoryEstimate {
  double parameters = 0;
  double gradients = 0;
  double moments = 0;      // of the optimizer
  double panels = 0;       // of weights, which the processor's products keep between batches
  double activations = 0;  // of one batch of a step, with their gradients and the batch itself

  double total() const { return parameters + gradients + moments + panels + activations; }
};

/// How a step is spread over ranks and batches: what is estimated is what one rank holds.
struct StepSpread {
  std::int64_t ranks = 1;
  std::int64_t parts = 1, accumulation = 1;  // as in TrainerOptions
  Sharing sharing = Sharing::nothing;
  std::size_t bucket_bytes = GradientExchange::bucket_bytes;
  bool keeps_panels = false;  // on the cpu backend
};

/// The need of a step with this batch and Adam, found by taking the step on a backend that computes
/// nothing (core/accounting_backend.h): the model's own code asks for the memory, so the account is
/// that of any model, with parameters frozen or not. `options` are those of the backend to come.
/// For one batch on one rank it is the allocator's own peak to a thousandth
/// (tests/memory_estimate_test.cpp holds the others too). Not in either:
/// what matrix products keep for themselves, batches on the host, evaluation.
///
/// `times`: the batch stands for one of so many times its size. From a batch to two of it in one,
/// the peak grows by as much as for each further one.
MemoryEstimate estimate_training(const std::function<std::unique_ptr<Model>(Backend&)>& make_model,
                                 const BackendOptions& options, const Batch& batch,
                                 double times = 1, const AdamOptions& adam = {},
                                 const StepSpread& spread = {});

}  // namespace longhand::nn
