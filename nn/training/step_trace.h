#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/tensor_file.h"
#include "nn/training/optimizer.h"
#include "nn/training/step.h"

/// Collects all values of a training step as named arrays that other programs can read.
namespace longhand::nn {

/// The non-empty members of a batch: tokens, lengths, positions, features, targets [rows, groups]
/// (negative: not scored), values, weights (shaped like targets), head [1]. Each name begins with
/// `prefix`.
std::vector<NamedTensor> arrays_of(const Batch& batch, Backend& host, const std::string& prefix);

/// The prefix of the names of the batch with index `place`, such as "batches.2.".
std::string batch_prefix(std::int64_t place);

/// All values of one step: its inputs, results and updates.
///
///   batches.K.*                    batch K (arrays_of()), and its share in the loss
///   batches.K.activations.NAME     all activations that the model reports (Model::watch)
///   batches.K.loss                 mean over the batch's targets
///   gradients.NAME                 gradient of the step's loss, before clipping
///   parameters.before.NAME         the parameters before the update
///   parameters.after.NAME          the parameters after the update
///   optimizer.before.NAME.m, ...   Optimizer::state() before the update
///   optimizer.after.NAME.m, ...    Optimizer::state() after the update
///   rates.NAME, decays.NAME        learning rate and weight decay of a trained parameter
///   rows.NAME                      trained rows of a parameter, if only some rows are trained
///   step, loss, norm
///   factor                         factor of the gradients for clipping
///   ...                            the other numbers of the optimizer's formula
///                                  (Optimizer::numbers)
struct StepTrace {
  std::int64_t step = 0;
  std::vector<NamedTensor> tensors;
};

/// Observes one step without changing it. Works on a single rank only.
class StepTracer {
 public:
  /// Must be created after the optimizer is prepared and before the step is executed.
  StepTracer(Model& model, const Optimizer& optimizer, const Step& step);
  ~StepTracer();
  StepTracer(const StepTracer&) = delete;
  StepTracer& operator=(const StepTracer&) = delete;

  void begin_batch(std::int64_t place);
  void gradients_are_there();
  /// Must be called after the step.
  StepTrace trace(const PlacedStep& placed);

 private:
  void keep(const std::string& name, const Tensor& x);
  void put(const std::string& name, const std::vector<double>& values);
  void keep_state(const std::string& when);

  Model& model_;
  const Optimizer& optimizer_;
  std::vector<double> shares_;  // shares of the batches in the loss
  std::shared_ptr<Backend> host_;
  /// The model's own observer, which is restored at the end.
  std::function<void(const std::string&, const Tensor&)> watch_;
  std::string batch_;
  StepTrace trace_;
};

}  // namespace longhand::nn
