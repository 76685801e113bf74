#include "nn/training/trainer.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "core/error.h"
#include "nn/training/interruption.h"
#include "nn/training/not_finite.h"

namespace longhand::nn {

Outcome Trainer::take_steps() {
  const auto due = [&](std::int64_t every) { return every > 0 && step_ % every == 0; };
  checkpoints_.open();
  if (step_ > 0 && due(options_.evaluate_every)) evaluate();  // it ended before that was done
  Prefetcher data(source_, {.first_step = step_ + 1,
                            .last_step = options_.steps,
                            .first_part = ranks_.rank() * options_.accumulation,
                            .parts = options_.accumulation});
  while (step_ < options_.steps) {
    take(next_step(data));
    if (due(options_.look_every)) read();
    if (due(options_.evaluate_every)) evaluate();
    if (due(options_.checkpoint_every)) save();
    if (step_ < options_.steps && hooks_.stop && hooks_.stop()) {
      save();
      return Outcome::stopped;
    }
  }
  save();
  evaluate();
  return Outcome::finished;
}

void Trainer::take(Step step) {
  if (step.report.skipped) return skip(std::move(step));
  optimizer_->prepare(step.report.rate, step.report.step);
  bool repeated = false;
  if (ranks_.size() == 1 && recorded_.possible(model_)) {
    repeated = recorded_.take(model_, step, [&](PlacedStep& placed) { compute(placed, {}); });
  } else {
    PlacedStep placed(model_, step);
    compute(placed, interrupt());
    step.numbers = placed.numbers;
    step.choices = placed.choices;
  }
  step_ = step.report.step;
  step.report.memory = model_.parameters().backend().memory().use();
  unread_.add(std::move(step));
  if (!repeated || unread_.enough()) read();
}

void Trainer::compute(PlacedStep& step, const std::function<bool()>& interrupt) {
  {
    // To the optimizer, which changes parameters, it comes whole or not at all.
    const Interruptible gradients(model_.parameters().backend(), interrupt);
    step.add_gradients(model_);
  }
  optimizer_->step(sum_over_ranks(ranks_, model_.parameters(), step.losses()));
  step.put_norm(optimizer_->norm());
}

Step Trainer::next_step(Prefetcher& data) const {
  Step step{.report = {.step = step_ + 1}, .parts = {}, .shares = {}, .start = Step::Clock::now()};
  StepReport& report = step.report;
  report.rate = options_.schedule.at(report.step);
  step.parts = data.next(interrupt());
  step.first_part = ranks_.rank() * options_.accumulation;
  report.waited = step.seconds();

  // The step's loss is one weighted mean over all its targets, however they are spread over parts
  // and ranks: with W the weight of all and w a part's, loss = sum w/W loss_part.
  std::array<double, 3> totals{};  // weight, rows, pairs
  for (const Batch& part : step.parts) {
    const double weight = part.total_weight();
    if (weight != 0) step.shares.push_back(weight);
    totals[0] += weight;
    totals[1] += static_cast<double>(part.rows());
    for (const std::int32_t n : part.lengths) totals[2] += 0.5 * n * (n + 1.0);
  }
  ranks_.sum(totals);
  report.skipped = totals[0] == 0;
  LONGHAND_CHECK(report.skipped || totals[0] > 0, "step ", report.step,
                 ": expected weights that add up to more than 0, got ", totals[0]);
  for (double& share : step.shares) share /= totals[0];
  std::erase_if(step.parts, [](const Batch& part) { return part.total_weight() == 0; });
  report.tokens = static_cast<std::int64_t>(totals[1]);
  report.pairs = totals[2];
  return step;
}

void Trainer::skip(Step step) {
  read();
  step_ = step.report.step;
  step.report.seconds = step.seconds();
  step.report.memory = model_.parameters().backend().memory().use();
  if (hooks_.report) hooks_.report(step.report);
}

/// Waits for all steps taken, and reports them.
void Trainer::read() {
  const std::vector<Step> steps = unread_.read(ranks_);
  const auto bad = std::ranges::find_if_not(steps, is_finite);
  if (bad != steps.end()) step_ = bad->report.step - 1;  // neither it nor a later one did anything
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
  throw NotFinite(text("step ", step.report.step, ": loss ", step.report.loss, ", gradient norm ",
                       step.report.gradient_norm, "; first tensor that is not finite: ", first,
                       kept));
}

void Trainer::evaluate() {
  if (!hooks_.evaluate || evaluated()) return;
  save();
  std::optional<double> score;
  {
    const Interruptible evaluation(model_.parameters().backend(), interrupt());
    score = hooks_.evaluate(step_);
  }
  evaluated_ = step_;
  if (score) checkpoints_.score(step_, *score);
}

void Trainer::save() {
  read();
  const auto folder = checkpoints_.save(step_);
  if (folder && hooks_.saved) hooks_.saved(step_, *folder);
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
    const std::exception_ptr error = std::current_exception();
    try {
      save();  // what was taken is reported and kept whatever came after it
    } catch (const NotFinite&) {
      throw;
    } catch (const std::exception&) {  // what came first is the one to tell
    }
    std::rethrow_exception(error);
  }
}

void Trainer::resume(const std::filesystem::path& checkpoint) {
  const CheckpointInfo info = checkpoints_.load(checkpoint);
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
      optimizer_(make_optimizer(model.parameters(), options_.optimizer, options_.groups)),
      checkpoints_(options_.checkpoints, model.parameters(), *optimizer_, ranks.rank() == 0),
      recorded_(options_.recorded),
      unread_(options_.together) {
  LONGHAND_CHECK(options_.steps >= 0, "training: expected the number of steps, got ",
                 options_.steps);
  if (options_.schedule.steps == 0) options_.schedule.steps = options_.steps;
  LONGHAND_CHECK(options_.accumulation >= 1, "training: expected accumulation of at least 1, got ",
                 options_.accumulation);
}

}  // namespace longhand::nn
