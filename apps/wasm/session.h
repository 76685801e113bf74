#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "apps/run/config.h"
#include "core/json.h"
#include "nn/training/optimizer.h"
#include "nn/training/step.h"

namespace longhand::app {

/// A training without files. The text of a config.ini describes the run, as for `longhand train
/// --config`. Steps give the same bits as those of nn::Trainer. A session has one part per step
/// (training.parts and training.accumulation must be 1) and computes on the calling thread.
class Session {
 public:
  /// `parameters` are the bytes of a safetensors file with the values of all parameters. If it is
  /// empty, the parameters have their initial values.
  Session(std::string_view ini, std::span<const std::byte> parameters);

  /// The number of parameters, the instruction set that the kernels use, the number of steps of the
  /// run, and its seed.
  Json about() const;
  /// Executes steps until step `last`, and at most training.steps. Returns one report per step:
  /// step, loss, accuracy.
  Json train(std::int64_t last);
  /// Scores the model on `samples` test samples. `changes` are lines "key = value" that replace
  /// options of the task, such as "instructions = 128". Returns the value of each metric.
  Json evaluate(std::string_view changes, std::int64_t samples);
  /// The predictions after each token of a text: the `most` most probable tokens. Also returns the
  /// attention weights or the selected tokens of every head. Probabilities and weights are rounded
  /// to five decimals, so that the result is short.
  Json look(std::string_view prompt, std::int64_t most);

 private:
  void load(std::span<const std::byte> parameters);

  Config config_;
  TrainingSettings settings_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<const tasks::Task> task_;
  nn::Decoder model_;
  nn::BatchSource batches_;
  std::unique_ptr<nn::Optimizer> optimizer_;
  std::int64_t step_ = 0;
};

}  // namespace longhand::app
