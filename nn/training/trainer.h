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
  std::int64_t steps = -1;  // must be given
  /// A step is cut into so many parts, a power of two, and each of them into so many batches: see
  /// StepCut. The parts are spread over the ranks; what comes out depends on these two numbers
  /// alone.
  std::int64_t parts = 1, accumulation = 1;
  Sharing sharing = Sharing::nothing;  // among ranks: less memory, the same bits
  /// Gradients are exchanged in buckets of about so many bytes.
  std::size_t bucket_bytes = GradientExchange::bucket_bytes;
  Schedule schedule = {};  // over these steps, where it does not say another number
  OptimizerOptions optimizer = AdamOptions{};
  std::vector<ParameterGroup> groups = {};       // of parameters that learn differently
  std::int64_t evaluate_every = 0;               // steps; 0: only after the last
  std::optional<std::int64_t> evaluate_at = {};  // after this step too
  std::int64_t checkpoint_every = 0;             // steps; 0: only after the last and when stopped
  double checkpoint_seconds = 0;                 // the longest time without a checkpoint; 0: any
  CheckpointOptions checkpoints = {};
  std::int64_t look_every = 0;              // steps whose report finds the model as they left it
  std::optional<std::int64_t> traced = {};  // the step that hooks.traced is told of; of one rank

  // Where the backend repeats recorded work: how many shapes of steps are kept ready, 0 for none,
  // and about how many seconds' steps are read together.
  std::size_t recorded = 16;
  double together = 0.25;
};

struct TrainerHooks {
  /// Told every step in order; some steps late where the backend repeats recorded ones.
  std::function<void(const StepReport&)> report = {};
  /// Scores the model as it is; more is better. The best one's checkpoint is kept. Called on all
  /// ranks at the same time; what rank 0 returns is the score.
  std::function<std::optional<double>(std::int64_t step)> evaluate = {};
  std::function<void(std::int64_t step, const std::filesystem::path& folder)> saved = {};
  /// Told the step of options.traced from within, when it was taken.
  std::function<void(const StepTrace&)> traced = {};
  /// Asked after every step: true writes a checkpoint and returns from run().
  std::function<bool()> stop = {};
  /// Asked between operations: true leaves a step or an evaluation unfinished, writes a checkpoint
  /// of the last finished step and returns from run(). Not asked while recorded work is repeated,
  /// nor where there are several ranks: there the step is finished. An evaluation is left.
  std::function<bool()> interrupt = {};
};

enum class Outcome { finished, stopped };

/// The loop: data made ahead, loss, backward, clipping, the optimizer's step, evaluation and
/// checkpoints on their schedules. A run depends on its options, seeds and step number alone, so
/// one that was cut and resumed has the bits of one that was not, and one on several ranks those of
/// one on a single one. Rank 0 writes; all stop after the same step.
///
/// A checkpoint is written before every evaluation and before run() ends, whatever ends it, so that
/// neither a failing evaluation nor a full log loses what was trained. One exception: a loss or
/// gradient that is not finite ends the run with an Error naming the step and the first such
/// tensor; parameters and checkpoints stay as they were before that step.
///
/// Where steps are recorded and repeated (nn/training/recorded_steps.h), their numbers are read
/// some steps later, but before anything else is done with the model.
class Trainer {
 public:
  Trainer(Model& model, BatchSource source, TrainerOptions options, TrainerHooks hooks = {},
          Communicator& ranks = alone());

  /// Goes on from a checkpoint folder; the next step is the one after its own.
  void resume(const std::filesystem::path& checkpoint);
  /// From the latest in options.checkpoints; false when there is none.
  bool resume_latest();

  Outcome run();
  std::int64_t step() const { return step_; }  // the last one taken
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
  StepCut cut_;  // this rank's
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<GradientExchange> exchange_;  // where there are other ranks
  RunCheckpoints checkpoints_;
  RecordedSteps recorded_;
  UnreadSteps unread_;
  std::int64_t step_ = 0;
  bool began_ = false;                     // run() has taken a step
  bool is_save_due_ = false;               // after this step, by the time of rank 0
  Step::Clock::time_point saved_at_ = {};  // the last save, or when run() began
  std::optional<std::int64_t> evaluated_;  // the step of the last evaluation
};

}  // namespace longhand::nn
