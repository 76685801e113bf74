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
  std::array<double, 3> totals{};  // weight, tokens, pairs
  std::vector<double> shares;
  for (const Batch& part : parts) {
    const double weight = part.total_weight();
    if (weight != 0) shares.push_back(weight);
    totals[0] += weight;
    totals[1] += static_cast<double>(part.tokens.size());
    for (const std::int32_t n : part.lengths) totals[2] += 0.5 * n * (n + 1.0);
  }
  communicator_.sum(totals);
  LONGHAND_CHECK(totals[0] > 0, "step ", report.step, ": no target of the batch counts");
  for (double& share : shares) share /= totals[0];
  std::erase_if(parts, [](const Batch& part) { return part.total_weight() == 0; });
  report.tokens = static_cast<std::int64_t>(totals[1]);
  report.pairs = totals[2];

  Backend& backend = model_.parameters().backend();
  const auto count = static_cast<std::int64_t>(parts.size());
  const Tensor share_each = Tensor::from(backend, {count}, model_.parameters().type(), shares);
  const Tensor losses = empty_like(share_each), hits = empty_like(share_each);
  optimizer_.prepare(report.rate, report.step);

  bool choices = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const Loss loss = add_gradients(parts[static_cast<std::size_t>(i)], share_each.slice(i, 1));
    backend(Copy{.x = loss.value.value(), .y = losses.slice(i, 1)});
    choices = choices && loss.hits;
    if (loss.hits) backend(Copy{.x = loss.hits, .y = hits.slice(i, 1)});
  }
  optimizer_.step(communicator_.size() > 1 ? sum_over_ranks(losses) : losses);

  const std::vector<double> loss_each = losses.to_doubles();
  std::vector<double> hits_each(shares.size());
  if (choices) hits_each = hits.to_doubles();
  std::array<double, 2> sums{};  // loss, hits
  for (std::size_t i = 0; i < shares.size(); ++i) {
    sums[0] += shares[i] * loss_each[i];
    sums[1] += shares[i] * hits_each[i];
  }
  communicator_.sum(sums);
  report.loss = sums[0];
  if (choices) report.accuracy = sums[1];
  report.gradient_norm = optimizer_.norm().item();
  if (!std::isfinite(report.loss) || !std::isfinite(report.gradient_norm)) {
    not_finite(report, parts, share_each);
  }
  step_ = report.step;
  report.memory = backend.memory().use();
  return report;
}

Loss Trainer::add_gradients(const Batch& part, const Tensor& share) {
  Tape tape;
  Loss loss;
  {
    const Recording recording(tape);
    loss = model_.loss(part);
  }
  tape.backward(loss.value, share);
  return loss;
}

Tensor Trainer::sum_over_ranks(const Tensor& losses) {
  std::vector<Tensor> all;
  for (const Parameter& p : model_.parameters().all()) {
    if (Tensor gradient = p.var().grad()) all.push_back(std::move(gradient));
  }
  // Whether all ranks' losses are finite: an infinite one stays it in a sum.
  const Tensor sum(losses.backend(), {1}, losses.dtype());
  sum.backend()(
      Reduce{.reduction = Reduction::sum, .x = losses.reshape({1, losses.size()}), .y = sum});
  all.push_back(sum);
  communicator_.sum(all);
  return sum;
}

void Trainer::not_finite(const StepReport& report, const std::vector<Batch>& parts,
                         const Tensor& shares) {
  std::string where;
  const auto look = [&](const std::string& name, const Tensor& x) {
    if (where.empty() && count_nonfinite(x) > 0) where = described(name, x);
  };
  // The step changed nothing, so taken again it computes the same.
  for (const Parameter& p : model_.parameters().all()) look(p.name(), p.value());
  const auto watch = std::exchange(model_.watch, look);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    add_gradients(parts[i], shares.slice(static_cast<std::int64_t>(i), 1));
  }
  model_.watch = watch;
  if (communicator_.size() > 1) sum_over_ranks(shares);
  for (const Parameter& p : model_.parameters().all()) {
    if (const Tensor gradient = p.var().grad()) look("gradient of " + p.name(), gradient);
  }
  model_.parameters().clear_gradients();
  optimizer_.go_on();
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
