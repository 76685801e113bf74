#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "core/memory.h"
#include "nn/batch.h"
#include "nn/checkpoint_store.h"
#include "nn/communicator.h"
#include "nn/model.h"
#include "nn/optimizer.h"
#include "nn/recent.h"
#include "nn/schedule.h"
#include "nn/step_shape.h"

namespace longhand::nn {

struct TrainerOptions {
  std::int64_t steps = 0;
  std::int64_t accumulation = 1;  // parts of a step on each rank, whose gradients add up
  Schedule schedule = {};
  AdamOptions adam = {};
  std::int64_t evaluate_every = 0;         // steps; 0: only after the last
  std::int64_t checkpoint_every = 0;       // steps; 0: only after the last and when stopped
  std::filesystem::path checkpoints = {};  // empty: none are written
  int keep = 2;                            // of the latest; the best stays as well
  std::uint64_t most_file_bytes = 0;       // of a checkpoint's files; 0: no limit
  std::int64_t look_every = 0;             // steps whose report finds the model as they left it

  // Where the backend repeats recorded work: how many shapes of steps are kept ready, 0 for none,
  // and about how many seconds' steps are read together.
  std::size_t recorded = 16;
  double together = 0.25;
  Metadata metadata = {};  // written into every checkpoint
};

/// One optimizer step, after it was taken.
struct StepReport {
  std::int64_t step = 0;
  double loss = 0;                      // weighted mean over the step's counted targets
  std::optional<double> accuracy = {};  // weighted share of right choices
  double rate = 0;
  double gradient_norm = 0;  // before clipping
  std::int64_t tokens = 0;   // on all ranks
  double pairs = 0;          // of a token and one up to it in its sequence, on all ranks
  // Of wall time, and of these for data; means over the steps that were read together.
  double seconds = 0;
  double waited = 0;
  MemoryUse memory = {};
  /// No target of its batch counts, so there was nothing to learn: parameters and moments stayed as
  /// they were, and loss and norm mean nothing.
  bool skipped = false;
};

struct TrainerHooks {
  /// Told every step in order; some steps late where the backend repeats recorded ones.
  std::function<void(const StepReport&)> report = {};
  /// Scores the model as it is; more is better. The best one's checkpoint is kept.
  std::function<std::optional<double>(std::int64_t step)> evaluate = {};
  std::function<void(std::int64_t step, const std::filesystem::path& folder)> saved = {};
  /// Asked after every step: true writes a checkpoint and returns from run().
  std::function<bool()> stop = {};
  /// Asked between operations: true leaves a step or an evaluation unfinished, writes a checkpoint
  /// of the last finished step and returns from run(). Not asked while recorded work is repeated,
  /// nor where there are several ranks: there the step is finished.
  std::function<bool()> interrupt = {};
};

enum class Outcome { finished, stopped };

/// The loop: data made ahead, loss, backward, clipping, Adam, evaluation and checkpoints on their
/// schedules. A run depends on its options, seeds and step number alone, so one that was cut and
/// resumed has the bits of one that was not.
///
/// A checkpoint is written before every evaluation and before run() ends, whatever ends it, so that
/// neither a failing evaluation nor a full log loses what was trained. One exception: a loss or
/// gradient that is not finite ends the run with an Error naming the step and the first such
/// tensor; parameters and checkpoints stay as they were before that step.
///
/// Where the backend can repeat recorded work (core/backend.h), a step like an earlier one in shape
/// is repeated: the host brings up its batch and waits for nothing. Its numbers are read some steps
/// later, together with those of its neighbours, but before anything else is done with the model.
class Trainer {
 public:
  Trainer(Model& model, BatchSource source, TrainerOptions options, TrainerHooks hooks = {},
          Communicator& communicator = alone());

  /// Goes on from a checkpoint folder; the next step is the one after its own.
  void resume(const std::filesystem::path& checkpoint);
  /// From the latest in options.checkpoints; false when there is none.
  bool resume_latest();

  Outcome run();
  std::int64_t step() const { return step_; }  // the last one taken
  bool evaluated() const { return evaluated_ == step_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// Where a step's numbers lie in the backend's memory.
  struct Place {
    std::vector<PlacedBatch> parts;
    Tensor shares;   // [parts]
    Tensor numbers;  // the parts' losses, then their hits, then the norm
    bool choices = true;
    std::unique_ptr<Repeat> repeat;  // of a recorded step
  };
  /// A step that was taken but not looked at.
  struct Unread {
    StepReport report;
    std::vector<Batch> parts;    // those with a counted target
    std::vector<double> shares;  // of each in the step's weight
    Clock::time_point start;
    Tensor numbers = {};
    bool choices = true;
  };

  struct NotFinite;  // the Error of a step whose loss or gradient is not finite

  Outcome take_steps();
  bool writes() const { return store_ && communicator_.rank() == 0; }
  std::function<bool()> interrupt() const;
  Unread next_step(Prefetcher& data);
  void take(Unread step);
  void skip(Unread step);
  bool repeats() const;
  Place place_for(const std::vector<Batch>& parts, bool recorded) const;
  void run_operations(Place& place);
  /// A part's loss; share times its gradients are added to the parameters'. share [1]
  Loss add_gradients(const PlacedBatch& part, const Tensor& share);
  /// Adds up the gradients over the ranks. Returns the losses' sum over all ranks, [1].
  Tensor sum_over_ranks(const Tensor& losses);
  /// Waits for all steps taken, and reports them.
  void read();
  void finish(Unread& step);
  [[noreturn]] void not_finite(const Unread& step);
  void evaluate();
  void save();

  Model& model_;
  BatchSource source_;
  TrainerOptions options_;
  TrainerHooks hooks_;
  Communicator& communicator_;
  AdamOptimizer optimizer_;
  std::optional<CheckpointStore> store_;

  Recent<StepShape, Place> places_;  // of repeated steps
  std::vector<Unread> unread_;
  std::size_t together_ = 1;  // steps read at once
  std::int64_t step_ = 0;
  std::optional<std::int64_t> saved_;      // the step of the last checkpoint
  std::optional<std::int64_t> evaluated_;  // the step of the last evaluation
  std::optional<double> best_;             // score so far
};

}  // namespace longhand::nn
