#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/tensor_file.h"
#include "nn/training/optimizer.h"
#include "nn/training/step.h"

/// All values of a training step as arrays that other programs can read.
namespace longhand::nn {

/// The contents of a batch, as far as they exist: tokens, lengths, positions, features, targets
/// [rows, groups] (negative: not scored), values, weights (shape of targets), head [1]. Each name
/// starts with the prefix.
std::vector<NamedTensor> arrays_of(const Batch& batch, Backend& host, const std::string& prefix);

/// The prefix of the batch at this place of its step, such as "batches.2.".
std::string batch_prefix(std::int64_t place);

/// One step: its inputs, results and updates.
///
///   batches.K.*                    each of its batches (arrays_of), and its share in the loss
///   batches.K.activations.NAME     all activations that the model shows (Model::watch)
///   batches.K.loss                 mean over its targets
///   gradients.NAME                 of the whole loss, the sum of share times loss; not clipped
///   parameters.before.NAME, parameters.after.NAME
///   optimizer.before.NAME.m, ...   Optimizer::state(), and optimizer.after
///   rates.NAME, decays.NAME        of a trained parameter; rows.NAME: its trained rows, if not all
///   all step, loss, norm, factor   factor: multiplier of the gradients for clipping
///   and the other numbers of the optimizer's formula (Optimizer::numbers)
struct StepTrace {
  std::int64_t step = 0;
  std::vector<NamedTensor> tensors;
};

/// Observes one step without changing it. Works on a single rank only.
class StepTracer {
 public:
  /// Create it before the step, after the optimizer was prepared.
  StepTracer(Model& model, const Optimizer& optimizer, const Step& step);
  ~StepTracer();
  StepTracer(const StepTracer&) = delete;
  StepTracer& operator=(const StepTracer&) = delete;

  void begin_batch(std::int64_t place);
  void gradients_are_there();
  /// Call it after the step.
  StepTrace trace(const PlacedStep& placed);

 private:
  void keep(const std::string& name, const Tensor& x);
  void put(const std::string& name, const std::vector<double>& values);
  void keep_state(const std::string& when);

  Model& model_;
  const Optimizer& optimizer_;
  std::vector<double> shares_;  // shares of the batches, as given
  std::shared_ptr<Backend> host_;
  std::function<void(const std::string&, const Tensor&)> watch_;  // the model's previous observer
  std::string batch_;
  StepTrace trace_;
};

}  // namespace longhand::nn
