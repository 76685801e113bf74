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
  std::int64_t steps = -1;  // must be set
  /// A step is cut into this many parts, a power of two, and each part into this many batches (see
  /// StepCut). Parts are spread over the ranks. The result depends on these two numbers, not on the
  /// number of ranks.
  std::int64_t parts = 1, accumulation = 1;
  Sharing sharing = Sharing::nothing;  // what ranks share to save memory; the bits stay the same
  /// Gradients are exchanged in buckets of about this many bytes.
  std::size_t bucket_bytes = GradientExchange::bucket_bytes;
  Schedule schedule = {};  // runs over these steps unless it names its own number
  OptimizerOptions optimizer = AdamOptions{};
  std::vector<ParameterGroup> groups = {};  // parameters with a learning rate or decay of their own
  std::int64_t evaluate_every = 0;          // in steps; 0: only after the last one
  std::optional<std::int64_t> evaluate_at = {};  // also evaluate after this step
  std::int64_t checkpoint_every = 0;  // in steps; 0: only after the last one and when stopped
  double checkpoint_seconds = 0;      // the longest time without a checkpoint; 0: any
  CheckpointOptions checkpoints = {};
  // in steps: after each of them the report comes at once, and finds the model as that step left it
  std::int64_t look_every = 0;
  std::optional<std::int64_t> traced = {};  // the step that hooks.traced receives; on one rank only

  // If the backend can record work and repeat it: the number of shapes of steps to keep recorded
  // (0: none), and about how many seconds of steps to read back together.
  std::size_t recorded = 16;
  double together = 0.25;
};

struct TrainerHooks {
  /// Receives every step in order. Where the backend repeats recorded steps, reports come some
  /// steps late.
  std::function<void(const StepReport&)> report = {};
  /// Scores the current model; a higher score is better, and the best checkpoint is kept. It is
  /// called on all ranks at once, and the score is what rank 0 returns.
  std::function<std::optional<double>(std::int64_t step)> evaluate = {};
  std::function<void(std::int64_t step, const std::filesystem::path& folder)> saved = {};
  /// Receives the operations inside step options.traced once that step was taken.
  std::function<void(const StepTrace&)> traced = {};
  /// Asked after every step. If it returns true, run() writes a checkpoint and returns.
  std::function<bool()> stop = {};
  /// Asked between operations. If it returns true, run() abandons the step or evaluation in
  /// progress, writes a checkpoint of the last finished step and returns. It is not asked while
  /// recorded work is repeated. With several ranks, a step in progress is finished, and only an
  /// evaluation is abandoned.
  std::function<bool()> interrupt = {};
};

enum class Outcome { finished, stopped };

/// The training loop: it takes prepared batches, computes the loss and its gradients, clips them,
/// takes the optimizer's step, and evaluates and saves checkpoints on schedule. A run depends only
/// on its options, its seeds and the step number. So an interrupted and resumed run has the same
/// bits as an uninterrupted one, and a run on several ranks the same bits as one on a single rank.
/// Rank 0 writes the files; all ranks stop after the same step.
///
/// A checkpoint is written before every evaluation and before run() ends, whatever ends it, so that
/// neither a failing evaluation nor a full log loses training. There is one exception: when a loss
/// or gradient is not finite, the run ends with an Error that names the step and the first such
/// tensor, and parameters and checkpoints stay as they were before that step.
///
/// Where steps are recorded and repeated (nn/training/recorded_steps.h), their numbers are read
/// some steps later, but always before anything else uses the model.
class Trainer {
 public:
  Trainer(Model& model, BatchSource source, TrainerOptions options, TrainerHooks hooks = {},
          Communicator& ranks = alone());

  /// Continues from a checkpoint folder, with the step after the saved one.
  void resume(const std::filesystem::path& checkpoint);
  /// Continues from the latest checkpoint in options.checkpoints; returns false if there is none.
  bool resume_latest();

  Outcome run();
  std::int64_t step() const { return step_; }  // the last step taken
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
  StepCut cut_;  // this rank's share
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<GradientExchange> exchange_;  // empty on a single rank
  RunCheckpoints checkpoints_;
  RecordedSteps recorded_;
  UnreadSteps unread_;
  std::int64_t step_ = 0;
  bool began_ = false;                     // whether run() has taken a step
  bool is_save_due_ = false;               // after this step, by the time of rank 0
  Step::Clock::time_point saved_at_ = {};  // the last save, or when run() began
  std::optional<std::int64_t> evaluated_;  // the step evaluated last
};

}  // namespace longhand::nn
