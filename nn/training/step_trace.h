#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/tensor_file.h"
#include "nn/training/optimizer.h"
#include "nn/training/step.h"

/// A training step from within, as arrays that any other program can read.
namespace longhand::nn {

/// What a batch holds, of what it has: tokens, lengths, positions, features, targets [rows, groups]
/// (negative: not counted), values, weights (as targets), head [1]; each name behind the prefix.
std::vector<NamedTensor> arrays_of(const Batch& batch, Backend& host, const std::string& prefix);

/// "batches.2.", of the batch at that place in its step.
std::string batch_prefix(std::int64_t place);

/// One step: what it read, what came of it, what it changed.
///
///   batches.K.*                    each of its batches (arrays_of), and its share in the loss
///   batches.K.activations.NAME     all that the model shows of itself (Model::watch)
///   batches.K.loss                 the mean over its targets
///   gradients.NAME                 of the whole loss, the sum of share times loss; not clipped
///   parameters.before.NAME, parameters.after.NAME
///   optimizer.before.NAME.m, ...   Optimizer::state(), and optimizer.after
///   rates.NAME, decays.NAME        of a parameter that learns; rows.NAME: those that do, if not
///   all step, loss, norm, factor       factor: what the gradients are multiplied by, for clipping
///   and what the optimizer's formula has besides (Optimizer::numbers)
struct StepTrace {
  std::int64_t step = 0;
  std::vector<NamedTensor> tensors;
};

/// Looks into one step as it is taken; nothing about the step is otherwise than without. Steps are
/// those of one rank alone.
class StepTracer {
 public:
  /// Before the step, whose numbers the optimizer was given.
  StepTracer(Model& model, const Optimizer& optimizer, const Step& step);
  ~StepTracer();
  StepTracer(const StepTracer&) = delete;
  StepTracer& operator=(const StepTracer&) = delete;

  void begin_batch(std::int64_t place);
  void gradients_are_there();
  /// After the step.
  StepTrace trace(const PlacedStep& placed);

 private:
  void keep(const std::string& name, const Tensor& x);
  void put(const std::string& name, const std::vector<double>& values);
  void keep_state(const std::string& when);

  Model& model_;
  const Optimizer& optimizer_;
  std::vector<double> shares_;  // of the batches, as told
  std::shared_ptr<Backend> host_;
  std::function<void(const std::string&, const Tensor&)> watch_;  // the model's own
  std::string batch_;
  StepTrace trace_;
};

}  // namespace longhand::nn
