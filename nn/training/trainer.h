#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "nn/model.h"
#include "nn/ranks/communicator.h"
#include "nn/training/fingerprints.h"
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
  /// `parts` is the number of parts of a step, a power of two, and `accumulation` is the number of
  /// batches per part (StepCut). Parts are distributed over the ranks. Results depend on these two
  /// numbers, but not on the number of ranks.
  std::int64_t parts = 1, accumulation = 1;
  /// The data that ranks divide among themselves to save memory. Sharing does not change results.
  Sharing sharing = Sharing::nothing;
  /// Approximate size in bytes of the buckets in which gradients are exchanged.
  std::size_t bucket_bytes = GradientExchange::bucket_bytes;
  Schedule schedule = {};  // schedule.steps = 0: the schedule covers `steps`
  OptimizerOptions optimizer = AdamOptions{};
  /// Parameters with their own learning rate or weight decay.
  std::vector<ParameterGroup> groups = {};
  /// Number of steps between evaluations; 0: only after the last step.
  std::int64_t evaluate_every = 0;
  std::optional<std::int64_t> evaluate_at = {};  // also evaluate after this step
  /// Maximum seconds between evaluations; 0: no limit. The time of an evaluation does not count.
  double evaluate_seconds = 0;
  /// Number of steps between checkpoints; 0: only after the last step and when stopped.
  std::int64_t checkpoint_every = 0;
  double checkpoint_seconds = 0;  // maximum seconds between checkpoints; 0: no limit
  CheckpointOptions checkpoints = {};
  // If look_every is n > 0, steps n, 2n, 3n, ... are reported before the next step changes the
  // model. Other steps may be reported several steps later, if recorded steps are replayed.
  std::int64_t look_every = 0;
  /// The step that is passed to hooks.traced; allowed only with a single rank.
  std::optional<std::int64_t> traced = {};

  // Options for backends that can repeat recorded work. `recorded` is the maximum number of step
  // shapes to record (0: no recording). The results of several steps are read together, about every
  // `together` seconds.
  std::size_t recorded = 16;
  double together = 0.25;
};

struct TrainerHooks {
  /// Called with the report of every step, in order. If recorded steps are replayed, it is called
  /// several steps later.
  std::function<void(const StepReport&)> report = {};
  /// Scores the current model. Higher scores are better, and the checkpoint with the best score is
  /// kept. Called on all ranks; the score of rank 0 is used.
  std::function<std::optional<double>(std::int64_t step)> evaluate = {};
  std::function<void(std::int64_t step, const std::filesystem::path& folder)> saved = {};
  /// Called after the step options.traced, with all values of this step.
  std::function<void(const StepTrace&)> traced = {};
  /// Called after every step. If it returns true, run() writes a checkpoint and returns.
  std::function<bool()> stop = {};
  /// Called before each operation. If it returns true, run() abandons the current step or
  /// evaluation, writes a checkpoint of the last finished step and returns. It is not called while
  /// recorded work is replayed. With several ranks, only evaluations can be abandoned.
  std::function<bool()> interrupt = {};
  /// If set, StepReport::batches is computed, and this hook is called with the hashes of the
  /// training state. It is called before the first step, after each step for which `hashes_after`
  /// returns true, and before each checkpoint. It must be set on all ranks or on none, and is
  /// called on the ranks that store the whole state. It is called at most once per step, after
  /// `report`.
  std::function<void(std::int64_t step, const StateHashes&)> hashed = {};
  std::function<bool(std::int64_t step)> hashes_after = {};
};

enum class Outcome { finished, stopped };

/// The training loop. For each step, it computes the loss of the next batches and its gradients,
/// clips the gradients, and executes the optimizer. At the configured steps, it evaluates the model
/// and saves a checkpoint. A step depends only on the options, the seeds and the step number. An
/// interrupted and resumed run therefore gives the same bits as an uninterrupted run, and a run on
/// several ranks gives the same bits as a run on one rank. Rank 0 writes the files. All ranks stop
/// after the same step.
///
/// A checkpoint is written before every evaluation and before run() ends, so a failing evaluation
/// does not lose finished steps. There are two exceptions. If one of several ranks fails, no
/// checkpoint is written. If a loss or gradient is not finite, the run ends with an Error that
/// names the step and the first tensor that is not finite. The parameters and checkpoints are then
/// those before this step.
///
/// If steps are recorded and replayed (nn/training/recorded_steps.h), their results are read
/// several steps later. They are always read before anything except a step uses the model.
class Trainer {
 public:
  Trainer(Model& model, BatchSource source, TrainerOptions options, TrainerHooks hooks = {},
          Communicator& ranks = single_rank());

  /// Loads a checkpoint. The next step is the step after the checkpoint's step.
  void resume(const std::filesystem::path& checkpoint);
  /// Continues from the latest checkpoint in options.checkpoints. Returns false if there is none.
  bool resume_latest();

  Outcome run();
  /// Changes the number of steps and the schedule between two calls of run().
  void set_steps(std::int64_t steps, const Schedule& schedule);
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
  void hash();
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
  bool began_ = false;  // true once run() has executed a step
  /// is_save_due_: true if checkpoint_seconds have passed on rank 0, so that a checkpoint follows
  /// this step. is_evaluation_due_: the same with evaluate_seconds and an evaluation.
  bool is_save_due_ = false, is_evaluation_due_ = false;
  /// Times of the last save and of the last evaluation. Before its first step, run() sets both to
  /// the current time.
  Step::Clock::time_point saved_at_ = {}, evaluated_at_ = {};
  std::optional<std::int64_t> evaluated_;  // step of the last evaluation
  std::optional<std::int64_t> hashed_;     // step of the last hashes
};

}  // namespace longhand::nn
