#include "nn/training/trainer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "core/error.h"
#include "nn/ranks/tree.h"
#include "nn/training/gradient_tree.h"
#include "nn/training/interruption.h"
#include "nn/training/not_finite.h"

namespace longhand::nn {

Outcome Trainer::take_steps() {
  const auto due = [&](std::int64_t every) { return every > 0 && step_ % every == 0; };
  const auto evaluates = [&] {
    return due(options_.evaluate_every) || step_ == options_.evaluate_at;
  };
  checkpoints_.open();
  if (step_ == 0) hash();
  // If the earlier process did not finish its last evaluation, a resumed run does this evaluation
  // first.
  if (step_ > 0 && evaluates()) evaluate();
  Prefetcher data(source_, {.first_step = step_ + 1,
                            .last_step = options_.steps,
                            .first_batch = cut_.first_batch(),
                            .batches = cut_.batches()});
  began_ = false;
  saved_at_ = evaluated_at_ = Step::Clock::now();
  while (step_ < options_.steps) {
    std::optional<Step> step = next_step(data);
    if (!step) {
      save();
      return Outcome::stopped;
    }
    take(std::move(*step));
    began_ = true;
    if (due(options_.look_every)) read();
    if (hooks_.hashes_after && hooks_.hashes_after(step_)) hash();
    if (evaluates() || is_evaluation_due_) evaluate();
    if (due(options_.checkpoint_every) || is_save_due_) save();
  }
  save();
  evaluate();
  return Outcome::finished;
}

void Trainer::take(Step step) {
  if (step.report.skipped) return skip(std::move(step));
  optimizer_->prepare(step.report.rate, step.report.step);
  bool repeated = false;
  std::optional<StepTrace> trace;
  const bool traced = hooks_.traced && options_.traced == step.report.step;
  if (!traced && ranks_.size() == 1 && recorded_.possible(model_)) {
    repeated = recorded_.take(model_, step, [&](PlacedStep& placed) { compute(placed, {}); });
  } else {
    std::optional<StepTracer> tracer;
    if (traced) tracer.emplace(model_, *optimizer_, step);
    PlacedStep placed(model_, step);
    if (ranks_.size() > 1) {
      compute_on_ranks(placed, step);
    } else {
      compute(placed, interrupt(), tracer ? &*tracer : nullptr);
    }
    step.numbers = placed.numbers;
    step.choices = placed.choices;
    if (tracer) trace = tracer->trace(placed);
  }
  step_ = step.report.step;
  step.report.memory = model_.parameters().backend().memory().use();
  unread_.add(std::move(step));
  if (trace) hooks_.traced(*trace);
  if (!repeated || unread_.enough()) read();
}

void Trainer::compute(PlacedStep& step, const std::function<bool()>& interrupt,
                      StepTracer* tracer) {
  if (tracer) step.begins = [tracer](std::int64_t place) { tracer->begin_batch(place); };
  {
    // The computation of gradients can be interrupted, but not the optimizer. A step is therefore
    // applied completely or not at all.
    const Interruptible gradients(model_.parameters().backend(), interrupt);
    step.add_gradients(model_);
  }
  if (tracer) tracer->gradients_are_there();
  optimizer_->step(step.losses());
  step.put_norm(optimizer_->norm());
}

/// Executes a step on several ranks. Gradients are summed over the ranks while the backward pass is
/// running.
void Trainer::compute_on_ranks(PlacedStep& placed, Step& step) {
  const Step::Clock::time_point start = Step::Clock::now();
  const std::uint64_t sent = ranks_.sent();
  placed.add_gradients(
      model_, [&](std::size_t parameter, const Tensor& sum) { exchange_->add(parameter, sum); });
  model_.parameters().backend().synchronize();
  step.own_seconds =
      std::chrono::duration<double>(Step::Clock::now() - start).count() - exchange_->waited();
  const Tensor losses = exchange_->finish(placed.losses());
  const bool all = options_.sharing != Sharing::gradients;
  optimizer_->step(losses, all ? nullptr : &exchange_->reached());
  placed.put_norm(optimizer_->norm());
  step.report.exchange = {.seconds = exchange_->seconds(),
                          .exposed = exchange_->exposed(),
                          .bytes = ranks_.sent() - sent};
}

/// The next step with its batches. No value if a rank requests a stop.
std::optional<Step> Trainer::next_step(Prefetcher& data) {
  const bool stop = began_ && hooks_.stop && hooks_.stop();
  if (stop && ranks_.size() == 1) return std::nullopt;
  Step step{.report = {.step = step_ + 1},
            .cut = cut_,
            .batches = {},
            .places = {},
            .shares = {},
            .start = Step::Clock::now()};
  StepReport& report = step.report;
  report.rate = options_.schedule.at(report.step);
  std::vector<Batch> batches = data.next(interrupt());
  report.waited = step.seconds();
  if (hooks_.hashed) report.batches = hash_of(batches, ranks_);

  // The loss of a step is the weighted mean over all targets of all ranks. If W is the total weight
  // of the targets of the step, and w that of a batch, loss = sum over batches of (w/W) loss_batch.
  const auto parts = static_cast<std::size_t>(cut_.parts);
  // The weight of each part, then five numbers: the number of rows, the number of pairs (token,
  // token that it sees), 1 to request a stop, 1 to request a checkpoint, and 1 to request an
  // evaluation.
  std::vector<double> mine(parts + 5);
  mine[parts + 2] = stop ? 1 : 0;
  const auto passed = [&](double seconds, Step::Clock::time_point since) {
    const std::chrono::duration<double> time = Step::Clock::now() - since;
    return ranks_.rank() == 0 && seconds > 0 && time.count() >= seconds ? 1.0 : 0.0;
  };
  mine[parts + 3] = passed(options_.checkpoint_seconds, saved_at_);
  mine[parts + 4] = passed(options_.evaluate_seconds, evaluated_at_);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const double weight = batches[i].total_weight();
    const std::int64_t place = cut_.first_batch() + static_cast<std::int64_t>(i);
    mine[cut_.part_of(place)] += weight;
    mine[parts] += static_cast<double>(batches[i].rows());
    for (const std::int32_t n : batches[i].lengths) mine[parts + 1] += 0.5 * n * (n + 1.0);
    if (weight == 0) continue;
    step.shares.push_back(weight);
    step.places.push_back(place);
    step.batches.push_back(std::move(batches[i]));
  }
  const std::vector<double> all = ranks_.gather(std::span<const double>(mine));
  std::vector<double> weights;
  double rows = 0;
  for (std::size_t at = 0; at < all.size(); at += mine.size()) {
    for (std::size_t part = 0; part < parts; ++part) weights.push_back(all[at + part]);
    rows += all[at + parts];
    report.pairs += all[at + parts + 1];
    if (all[at + parts + 2] != 0) return std::nullopt;
  }
  is_save_due_ = all[parts + 3] != 0;
  is_evaluation_due_ = all[parts + 4] != 0;
  const double weight = tree_sum(weights);
  report.skipped = weight == 0;
  LONGHAND_CHECK(report.skipped || weight > 0, "step ", report.step,
                 ": expected targets with a total weight above 0, got the total weight ", weight);
  for (double& share : step.shares) share /= weight;
  report.tokens = static_cast<std::int64_t>(rows);
  return step;
}

void Trainer::skip(Step step) {
  read();
  step_ = step.report.step;
  step.report.seconds = step.seconds();
  step.report.memory = model_.parameters().backend().memory().use();
  if (hooks_.report) hooks_.report(step.report);
}

/// Waits for the results of all steps that are not read yet, and reports them.
void Trainer::read() {
  const std::vector<Step> steps = unread_.read(ranks_);
  const auto bad = std::ranges::find_if_not(steps, is_finite);
  // Neither step `bad` nor any later step changed the model.
  if (bad != steps.end()) step_ = bad->report.step - 1;
  for (auto step = steps.begin(); step != bad; ++step) {
    if (hooks_.report) hooks_.report(step->report);
  }
  if (bad != steps.end()) end_not_finite(*bad);
}

void Trainer::end_not_finite(const Step& step) {
  const std::string first = first_nonfinite(model_, step, ranks_);
  optimizer_->go_on();
  std::string kept;
  if (const auto saved = checkpoints_.saved()) {
    kept = text("; the checkpoint of step ", *saved, " is kept");
  }
  ranks_.fail_together();
  if (ranks_.rank() > 0) throw FailedElsewhere("rank 0 prints the error");
  throw NotFinite(text("step ", step.report.step, ": loss ", step.report.loss, ", gradient norm ",
                       step.report.gradient_norm, "; first tensor that is not finite: ", first,
                       kept));
}

void Trainer::evaluate() {
  if (!hooks_.evaluate || evaluated()) return;
  save();
  const std::optional<double> scored = score();
  evaluated_ = step_;
  evaluated_at_ = Step::Clock::now();
  // NaN counts as the worst possible score.
  constexpr double worst = -std::numeric_limits<double>::infinity();
  if (scored) checkpoints_.score(step_, std::isnan(*scored) ? worst : *scored);
}

/// Evaluates the model. On all ranks, returns the score of rank 0.
std::optional<double> Trainer::score() {
  std::optional<double> score;
  bool left = false;
  {
    const Interruptible evaluation(model_.parameters().backend(), hooks_.interrupt);
    try {
      score = hooks_.evaluate(step_);
    } catch (const Interrupted&) {
      left = true;
    }
  }
  if (ranks_.any(left)) throw Interrupted();
  const std::array mine{score ? 1.0 : 0.0, score.value_or(0)};
  const std::vector<double> all = ranks_.gather(std::span<const double>(mine));
  if (all[0] == 0) return std::nullopt;
  return all[1];
}

void Trainer::save() {
  read();
  saved_at_ = Step::Clock::now();
  if (shares() && !ranks_.any(checkpoints_.wants(step_))) return;
  if (shares() || checkpoints_.wants(step_)) hash();
  const auto folder = checkpoints_.save(step_, shares() ? &ranks_ : nullptr);
  if (folder && ranks_.rank() == 0 && hooks_.saved) hooks_.saved(step_, *folder);
}

/// Calls hooks_.hashed, unless it was already called after this step.
void Trainer::hash() {
  if (!hooks_.hashed || hashed_ == step_) return;
  read();
  hashed_ = step_;
  if (!shares() && ranks_.rank() > 0) return;
  hooks_.hashed(step_, hash_state(model_.parameters(), *optimizer_, shares() ? &ranks_ : nullptr));
}

void Trainer::set_steps(std::int64_t steps, const Schedule& schedule) {
  options_.steps = steps;
  options_.schedule = schedule;
}

std::function<bool()> Trainer::interrupt() const {
  return ranks_.size() == 1 ? hooks_.interrupt : nullptr;
}

Outcome Trainer::run() {
  try {
    return take_steps();
  } catch (const Interrupted&) {
    model_.parameters().clear_gradients();
    save();
    return Outcome::stopped;
  } catch (const NotFinite&) {
    throw;
  } catch (...) {
    // save() needs all ranks, but the others may be in another collective operation or have ended
    if (ranks_.size() > 1) throw;
    const std::exception_ptr error = std::current_exception();
    try {
      save();  // reports and saves the finished steps
    } catch (const NotFinite&) {
      throw;
    } catch (const std::exception&) {  // the first error is reported
    }
    std::rethrow_exception(error);
  }
}

void Trainer::resume(const std::filesystem::path& checkpoint) {
  optimizer_->hold_all();
  const CheckpointInfo info = checkpoints_.load(checkpoint);
  optimizer_->hold_own();
  step_ = info.step;
  if (info.score) evaluated_ = info.step;
}

bool Trainer::resume_latest() {
  const auto latest = checkpoints_.latest();
  if (latest) resume(*latest);
  return latest.has_value();
}

Trainer::Trainer(Model& model, BatchSource source, TrainerOptions options, TrainerHooks hooks,
                 Communicator& ranks)
    : model_(model),
      source_(std::move(source)),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      ranks_(ranks),
      optimizer_(make_optimizer(model.parameters(), options_.optimizer, options_.groups,
                                shares() ? &ranks : nullptr)),
      checkpoints_(options_.checkpoints, model.parameters(), *optimizer_, ranks.rank() == 0),
      recorded_(options_.recorded),
      unread_(options_.together) {
  LONGHAND_CHECK(options_.steps >= 0, "training: expected a number of steps of at least 0, got ",
                 options_.steps);
  if (options_.schedule.steps == 0) options_.schedule.steps = options_.steps;
  if (options_.steps > 0)
    (void)options_.schedule.at(1);  // throws an Error if the schedule has invalid rates
  LONGHAND_CHECK(options_.accumulation >= 1, "training: accumulation: expected at least 1, got ",
                 options_.accumulation);
  LONGHAND_CHECK(
      options_.parts >= 1 && std::has_single_bit(static_cast<std::uint64_t>(options_.parts)),
      "training: expected the batch of a step to be cut into a number of parts that is a power of "
      "two, got ",
      options_.parts);
  LONGHAND_CHECK(options_.parts % ranks_.size() == 0, "training: expected at most ", options_.parts,
                 " ranks, because the batch of a step is cut into ", options_.parts, " parts, got ",
                 ranks_.size(), " ranks");
  // Each rank proposes the values of buffers from its own batches, and ranks do not exchange these
  // values. A model with buffers therefore requires a single rank.
  const std::span<const Buffer> buffers = model.parameters().buffers();
  LONGHAND_CHECK(buffers.empty() || ranks_.size() == 1,
                 "training: expected a single rank, because ",
                 buffers.empty() ? "" : buffers.front().name(),
                 " is computed from the batches of one rank, got ", ranks_.size());
  LONGHAND_CHECK(!options_.traced || ranks_.size() == 1,
                 "training: expected a single rank, because a step is traced, got ", ranks_.size(),
                 "; a single rank computes the same bits");
  cut_.parts = options_.parts / ranks_.size();
  cut_.first = cut_.parts * ranks_.rank();
  cut_.each = options_.accumulation;
  if (ranks_.size() == 1) return;
  std::vector<int> owners;
  if (options_.sharing == Sharing::gradients) {
    owners = optimizer_->owners();
  }
  exchange_.emplace(ranks_, model_.parameters(), std::move(owners), options_.bucket_bytes);
}

}  // namespace longhand::nn
