#include "nn/trainer.h"

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand::nn {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// How many entries are infinite or NaN.
std::int64_t count_nonfinite(const Tensor& x) {
  if (x.size() == 0 || !is_float(x.dtype())) return 0;
  const Tensor rows(x.backend(), {x.rows()}, master_type(x.dtype()));
  x.backend()(Reduce{.reduction = Reduction::nonfinite, .x = x, .y = rows});
  const Tensor all(x.backend(), {1}, rows.dtype());
  x.backend()(Reduce{.reduction = Reduction::sum, .x = rows.reshape({1, rows.size()}), .y = all});
  return static_cast<std::int64_t>(all.item());
}

std::string described(const std::string& name, const Tensor& x) {
  return text(name, " (", count_nonfinite(x), " of ", x.size(), " entries)");
}

}  // namespace

Trainer::Trainer(Model& model, BatchSource source, TrainerOptions options, TrainerHooks hooks,
                 Communicator& communicator)
    : model_(model),
      source_(std::move(source)),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      communicator_(communicator),
      optimizer_(model.parameters(), options_.adam) {
  LONGHAND_CHECK(options_.steps >= 0, "training: expected at least 0 steps, got ", options_.steps);
  LONGHAND_CHECK(options_.accumulation >= 1, "training: expected accumulation of at least 1, got ",
                 options_.accumulation);
  if (!options_.checkpoints.empty()) store_.emplace(options_.checkpoints, options_.keep);
}

void Trainer::resume(const std::filesystem::path& checkpoint) {
  const CheckpointInfo info = load_checkpoint(checkpoint, model_.parameters(), &optimizer_);
  step_ = info.step;
  saved_ = info.step;
  score_ = info.score;
  if (info.score) evaluated_ = info.step;
  if (const auto best = store_ ? store_->best() : std::nullopt) {
    best_ = read_checkpoint_info(store_->path(*best)).score;
  }
  if (score_ && (!best_ || *score_ > *best_)) {  // the run ended before it was marked
    best_ = score_;
    if (store_ && communicator_.rank() == 0 && store_->path(step_) == checkpoint) {
      store_->mark_best(step_);
    }
  }
}

bool Trainer::resume_latest() {
  const auto latest = store_ ? store_->latest() : std::nullopt;
  if (!latest) return false;
  resume(store_->path(*latest));
  return true;
}

Outcome Trainer::run() {
  const bool writes = store_ && communicator_.rank() == 0;
  if (writes) store_->clean();
  Prefetcher data(source_, {.first_step = step_ + 1,
                            .last_step = options_.steps,
                            .first_part = communicator_.rank() * options_.accumulation,
                            .parts = options_.accumulation});
  const auto due = [&](std::int64_t every) { return every > 0 && step_ % every == 0; };
  while (step_ < options_.steps) {
    const auto start = Clock::now();
    std::vector<Batch> parts = data.next();
    const double waited = seconds_since(start);
    StepReport report = take_step(std::move(parts));
    report.seconds = seconds_since(start);
    report.waited = waited;
    if (hooks_.report) hooks_.report(report);

    if (due(options_.evaluate_every)) evaluate();
    if (due(options_.checkpoint_every)) save();
    if (step_ < options_.steps && hooks_.stop && hooks_.stop()) {
      save();
      return Outcome::stopped;
    }
  }
  evaluate();
  save();
  return Outcome::finished;
}

StepReport Trainer::take_step(std::vector<Batch> parts) {
  StepReport report;
  report.step = step_ + 1;
  report.rate = options_.schedule.at(report.step);

  // The step's loss is one weighted mean over all its targets, however they are spread over parts
  // and ranks: with W the weight of all and w a part's, loss = sum w/W loss_part.
  std::vector<double> weights;
  std::array<double, 3> totals{};  // weight, tokens, pairs
  for (const Batch& part : parts) {
    weights.push_back(part.total_weight());
    totals[0] += weights.back();
    totals[1] += static_cast<double>(part.tokens.size());
    for (const std::int32_t n : part.lengths) totals[2] += 0.5 * n * (n + 1.0);
  }
  communicator_.sum(totals);
  LONGHAND_CHECK(totals[0] > 0, "step ", report.step, ": no target of the batch counts");
  report.tokens = static_cast<std::int64_t>(totals[1]);
  report.pairs = totals[2];

  std::array<double, 2> sums{};  // loss, hits
  bool choices = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (weights[i] == 0) continue;
    const double share = weights[i] / totals[0];
    Tape tape;
    Loss loss;
    {
      const Recording recording(tape);
      loss = model_.loss(parts[i]);
    }
    const Tensor dloss = empty_like(loss.value.value());
    dloss.backend()(Fill{.value = share, .y = dloss});
    tape.backward(loss.value, dloss);
    sums[0] += share * loss.value.value().item();
    choices = choices && loss.hits;
    if (loss.hits) sums[1] += share * loss.hits.item();
  }
  if (communicator_.size() > 1) {
    std::vector<Tensor> gradients;
    for (const Parameter& p : model_.parameters().all()) {
      if (Tensor gradient = p.var().grad()) gradients.push_back(std::move(gradient));
    }
    communicator_.sum(gradients);
  }
  communicator_.sum(sums);
  report.loss = sums[0];
  if (choices) report.accuracy = sums[1];
  report.gradient_norm = optimizer_.measure();
  if (!std::isfinite(report.loss) || !std::isfinite(report.gradient_norm)) {
    not_finite(report, parts);
  }
  optimizer_.apply(report.rate, report.step);
  step_ = report.step;
  report.memory = model_.parameters().backend().memory().use();
  return report;
}

void Trainer::not_finite(const StepReport& report, const std::vector<Batch>& parts) {
  std::string where;
  const auto look = [&](const std::string& name, const Tensor& x) {
    if (where.empty() && count_nonfinite(x) > 0) where = described(name, x);
  };
  for (const Parameter& p : model_.parameters().all()) look(p.name(), p.value());
  const auto watch = std::exchange(model_.watch, look);
  for (const Batch& part : parts) {
    if (where.empty()) model_.loss(part);
  }
  model_.watch = watch;
  for (const Parameter& p : model_.parameters().all()) {
    if (const Tensor gradient = p.var().grad()) look("gradient of " + p.name(), gradient);
  }
  model_.parameters().clear_gradients();
  std::string kept;
  if (saved_) kept = text("; the checkpoint of step ", *saved_, " is kept");
  fail("step ", report.step, ": loss ", report.loss, ", gradient norm ", report.gradient_norm,
       "; first tensor that is not finite: ", where.empty() ? "the loss" : where, kept);
}

void Trainer::evaluate() {
  if (!hooks_.evaluate || evaluated_ == step_) return;
  evaluated_ = step_;
  score_ = hooks_.evaluate(step_);
  if (!score_ || (best_ && !(*score_ > *best_))) return;
  best_ = score_;
  if (!store_ || communicator_.rank() != 0) return;
  save();
  store_->mark_best(step_);
}

void Trainer::save() {
  if (!store_ || communicator_.rank() != 0 || saved_ == step_) return;
  CheckpointInfo info{.step = step_, .more = options_.metadata};
  if (evaluated_ == step_) info.score = score_;
  store_->save(info, model_.parameters(), optimizer_);
  saved_ = step_;
  if (hooks_.saved) hooks_.saved(step_, store_->path(step_));
}

}  // namespace longhand::nn
