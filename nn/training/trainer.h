#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "nn/model.h"
#include "nn/ranks/communicator.h"
#include "nn/training/gradient_exchange.h"
#include "nn/training/optimizer.h"
#include "nn/training/prefetcher.h"
#include "nn/training/recorded_steps.h"
#include "nn/training/run_checkpoints.h"
#include "nn/training/schedule.h"
#include "nn/training/step.h"
#include "nn/training/step_trace.h"
#include "nn/training/unread_steps.h"

namespace longhand::nn {

struct TrainerOptions {
  std::int64_t steps = -1;  // number of steps; must be set
  /// Number of parts of a step, a power of two, and of batches per part (see StepCut). Parts are
  /// distributed over the ranks. The result depends on these two numbers, not on the number of
  /// ranks.
  std::int64_t parts = 1, accumulation = 1;
  /// The data that ranks divide among themselves to save memory. Results keep their bits.
  Sharing sharing = Sharing::nothing;
  /// Approximate size in bytes of the buckets in which gradients are exchanged.
  std::size_t bucket_bytes = GradientExchange::bucket_bytes;
  Schedule schedule = {};  // covers the trainer's steps unless it has its own number of steps
  OptimizerOptions optimizer = AdamOptions{};
  /// Parameters with a separate learning rate or weight decay.
  std::vector<ParameterGroup> groups = {};
  /// Number of steps between evaluations; 0: only after the last step.
  std::int64_t evaluate_every = 0;
  std::optional<std::int64_t> evaluate_at = {};  // also evaluate after this step
  /// Number of steps between checkpoints; 0: only after the last step and when stopped.
  std::int64_t checkpoint_every = 0;
  double checkpoint_seconds = 0;  // maximum time between checkpoints; 0: no limit
  CheckpointOptions checkpoints = {};
  // Number of steps between steps that are reported immediately, before a later step changes the
  // model.
  std::int64_t look_every = 0;
  /// Step that is passed to hooks.traced; only with a single rank.
  std::optional<std::int64_t> traced = {};

  // Two options of backends that can repeat recorded work. `recorded` is the maximum number of step
  // shapes to record (0: none). `together` is the approximate duration, in seconds, of the steps
  // whose results are read back together.
  std::size_t recorded = 16;
  double together = 0.25;
};

struct TrainerHooks {
  /// Called with the report of every step, in order. If recorded steps are replayed, reports are
  /// delayed by several steps.
  std::function<void(const StepReport&)> report = {};
  /// Scores the current model. Higher scores are better, and the best checkpoint is kept. Called on
  /// all ranks at the same time; the score is the one that rank 0 returns.
  std::function<std::optional<double>(std::int64_t step)> evaluate = {};
  std::function<void(std::int64_t step, const std::filesystem::path& folder)> saved = {};
  /// Called with all values of step options.traced after the step.
  std::function<void(const StepTrace&)> traced = {};
  /// Called after every step. If it returns true, run() writes a checkpoint and returns.
  std::function<bool()> stop = {};
  /// Called between operations. If it returns true, run() abandons the step or evaluation in
  /// progress, writes a checkpoint of the last finished step and returns. It is not called while
  /// recorded work is replayed. With several ranks, a step in progress is finished, and only an
  /// evaluation is abandoned.
  std::function<bool()> interrupt = {};
};

enum class Outcome { finished, stopped };

/// The training loop. It takes prepared batches, computes the loss and its gradients, clips them,
/// executes the optimizer's step, and evaluates and saves checkpoints as scheduled. A run depends
/// only on its options, its seeds and the step number. An interrupted and resumed run therefore has
/// the same bits as an uninterrupted one, and a run on several ranks the same bits as one on a
/// single rank. Rank 0 writes the files; all ranks stop after the same step.
///
/// A checkpoint is written before every evaluation and before run() ends for any reason, so that
/// neither a failing evaluation nor a full disk loses training. The only exception is a loss or
/// gradient that is not finite. The run then ends with an Error that names the step and the first
/// such tensor; parameters and checkpoints remain as they were before that step.
///
/// If steps are recorded and replayed (nn/training/recorded_steps.h), their results are read
/// several steps later, but always before anything else uses the model.
class Trainer {
 public:
  Trainer(Model& model, BatchSource source, TrainerOptions options, TrainerHooks hooks = {},
          Communicator& ranks = alone());

  /// Continues from a checkpoint folder, with the step after the saved step.
  void resume(const std::filesystem::path& checkpoint);
  /// Continues from the latest checkpoint in options.checkpoints. Returns false if there is none.
  bool resume_latest();

  Outcome run();
  std::int64_t step() const { return step_; }  // last executed step
  bool evaluated() const { return evaluated_ == step_; }

 private:
  Outcome take_steps();
  std::optional<Step> next_step(Prefetcher& data);
  void take(Step step);
  void compute(PlacedStep& step, const std::function<bool()>& interrupt,
               StepTracer* tracer = nullptr);
  void compute_on_ranks(PlacedStep& placed, Step& step);
  void skip(Step step);
  void read();
  [[noreturn]] void end_not_finite(const Step& step);
  void evaluate();
  std::optional<double> score();
  void save();
  std::function<bool()> interrupt() const;
  bool shares() const { return options_.sharing != Sharing::nothing && ranks_.size() > 1; }

  Model& model_;
  BatchSource source_;
  TrainerOptions options_;
  TrainerHooks hooks_;
  Communicator& ranks_;
  StepCut cut_;  // parts and batches of this rank
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<GradientExchange> exchange_;  // no value with a single rank
  RunCheckpoints checkpoints_;
  RecordedSteps recorded_;
  UnreadSteps unread_;
  std::int64_t step_ = 0;
  bool began_ = false;        // true once run() has executed a step
  bool is_save_due_ = false;  // true if a checkpoint is due after this step, by the time of rank 0
  Step::Clock::time_point saved_at_ = {};  // time of the last save, or of the start of run()
  std::optional<std::int64_t> evaluated_;  // step of the last evaluation
};

}  // namespace longhand::nn
