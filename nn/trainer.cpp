#include "nn/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "autograd/tape.h"
#include "core/error.h"
#include "nn/finite.h"
#include "nn/interruption.h"

namespace longhand::nn {
namespace {

constexpr double most_together = 16;  // steps

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string described(const std::string& name, const Tensor& x) {
  return text(name, " (", count_nonfinite(x), " of ", x.size(), " entries)");
}

}  // namespace

struct Trainer::NotFinite : Error {
  using Error::Error;
};

Trainer::Trainer(Model& model, BatchSource source, TrainerOptions options, TrainerHooks hooks,
                 Communicator& communicator)
    : model_(model),
      source_(std::move(source)),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      communicator_(communicator),
      optimizer_(model.parameters(), options_.adam),
      places_(options_.recorded) {
  LONGHAND_CHECK(options_.steps >= 0, "training: expected at least 0 steps, got ", options_.steps);
  if (options_.schedule.steps == 0) options_.schedule.steps = options_.steps;
  LONGHAND_CHECK(options_.accumulation >= 1, "training: expected accumulation of at least 1, got ",
                 options_.accumulation);
  if (!options_.checkpoints.empty()) {
    store_.emplace(options_.checkpoints, options_.keep, options_.most_file_bytes);
    check_file_size(model.parameters(), optimizer_, options_.metadata, options_.most_file_bytes);
  }
}

void Trainer::resume(const std::filesystem::path& checkpoint) {
  const CheckpointInfo info = load_checkpoint(checkpoint, model_.parameters(), &optimizer_);
  step_ = info.step;
  saved_ = info.step;
  if (info.score) evaluated_ = info.step;
  if (const auto best = store_ ? store_->best() : std::nullopt) {
    best_ = read_checkpoint_info(store_->path(*best)).score;
  }
  if (info.score && (!best_ || *info.score > *best_)) {  // the run ended before it was marked
    best_ = info.score;
    if (writes() && store_->path(step_) == checkpoint) store_->mark_best(step_);
  }
}

bool Trainer::resume_latest() {
  const auto latest = store_ ? store_->latest() : std::nullopt;
  if (!latest) return false;
  resume(store_->path(*latest));
  return true;
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

Outcome Trainer::take_steps() {
  const auto due = [&](std::int64_t every) { return every > 0 && step_ % every == 0; };
  if (writes()) store_->open();
  if (step_ > 0 && due(options_.evaluate_every)) evaluate();  // it ended before that was done
  Prefetcher data(source_, {.first_step = step_ + 1,
                            .last_step = options_.steps,
                            .first_part = communicator_.rank() * options_.accumulation,
                            .parts = options_.accumulation});
  while (step_ < options_.steps) {
    Unread step = next_step(data);
    if (step.report.skipped) {
      skip(std::move(step));
    } else {
      take(std::move(step));
    }
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

std::function<bool()> Trainer::interrupt() const {
  return communicator_.size() == 1 ? hooks_.interrupt : nullptr;
}

Trainer::Unread Trainer::next_step(Prefetcher& data) {
  Unread step{.report = {.step = step_ + 1}, .parts = {}, .shares = {}, .start = Clock::now()};
  StepReport& report = step.report;
  report.rate = options_.schedule.at(report.step);
  step.parts = data.next(interrupt());
  report.waited = seconds_since(step.start);

  // The step's loss is one weighted mean over all its targets, however they are spread over parts
  // and ranks: with W the weight of all and w a part's, loss = sum w/W loss_part.
  std::array<double, 3> totals{};  // weight, tokens, pairs
  for (const Batch& part : step.parts) {
    const double weight = part.total_weight();
    if (weight != 0) step.shares.push_back(weight);
    totals[0] += weight;
    totals[1] += static_cast<double>(part.tokens.size());
    for (const std::int32_t n : part.lengths) totals[2] += 0.5 * n * (n + 1.0);
  }
  communicator_.sum(totals);
  report.skipped = totals[0] == 0;
  LONGHAND_CHECK(report.skipped || totals[0] > 0, "step ", report.step,
                 ": expected weights that add up to more than 0, got ", totals[0]);
  for (double& share : step.shares) share /= totals[0];
  std::erase_if(step.parts, [](const Batch& part) { return part.total_weight() == 0; });
  report.tokens = static_cast<std::int64_t>(totals[1]);
  report.pairs = totals[2];
  return step;
}

bool Trainer::repeats() const {
  const Backend& backend = model_.parameters().backend();
  return backend.repeats() && options_.recorded > 0 && communicator_.size() == 1 && !model_.watch &&
         !backend.observer && !backend.options().checked;
}

Trainer::Place Trainer::place_for(const std::vector<Batch>& parts, bool recorded) const {
  Backend& backend = model_.parameters().backend();
  const DType type = model_.parameters().type();
  const auto count = std::ssize(parts);
  Place place{.parts = {},
              .shares = Tensor(backend, {count}, type),
              .numbers = Tensor::zeros(backend, {2 * count + 1}, type),
              .repeat = recorded ? backend.repeat() : nullptr};
  for (const Batch& part : parts) place.parts.push_back(nn::place(backend, part, type));
  return place;
}

void Trainer::take(Unread step) {
  const bool recorded = repeats();
  if (recorded) {
    for (Batch& part : step.parts) part = filled_up(std::move(part));
  }
  Place once;
  Place* place = &once;
  if (recorded) {
    place = &places_.at(shape_of(step.parts), [&] { return place_for(step.parts, true); });
    for (std::size_t i = 0; i < step.parts.size(); ++i) place->parts[i].assign(step.parts[i]);
  } else {
    once = place_for(step.parts, false);
  }
  for (const PlacedBatch& part : place->parts) model_.prepare(part.input.longest);
  place->shares.assign(step.shares);
  optimizer_.prepare(step.report.rate, step.report.step);

  const auto operations = [&] { run_operations(*place); };
  bool repeated = false;
  if (recorded) {
    repeated = place->repeat->run(operations);
  } else {
    operations();
  }
  step_ = step.report.step;
  step.numbers = place->numbers;
  if (repeated) {  // and the next one writes there too
    step.numbers = empty_like(place->numbers);
    step.numbers.backend()(Copy{.x = place->numbers, .y = step.numbers});
  }
  step.choices = place->choices;
  step.report.memory = step.numbers.backend().memory().use();
  unread_.push_back(std::move(step));
  if (!repeated || unread_.size() >= together_) read();
}

void Trainer::skip(Unread step) {
  read();
  step_ = step.report.step;
  step.report.seconds = seconds_since(step.start);
  step.report.memory = model_.parameters().backend().memory().use();
  if (hooks_.report) hooks_.report(step.report);
}

void Trainer::run_operations(Place& place) {
  Backend& backend = place.numbers.backend();
  const auto count = std::ssize(place.parts);
  const auto put = [&](const Tensor& number, std::int64_t at) {
    backend(Copy{.x = number, .y = place.numbers.slice(at, 1)});
  };
  {
    // To the optimizer, which changes parameters, it comes whole or not at all.
    const Interruptible gradients(backend, place.repeat ? nullptr : interrupt());
    for (std::int64_t i = 0; i < count; ++i) {
      const PlacedBatch& part = place.parts[static_cast<std::size_t>(i)];
      const Loss loss = add_gradients(part, place.shares.slice(i, 1));
      put(loss.value.value(), i);
      if (loss.hits) put(loss.hits, count + i);
      place.choices = place.choices && loss.hits;
    }
  }
  const Tensor losses = place.numbers.slice(0, count);
  optimizer_.step(communicator_.size() > 1 ? sum_over_ranks(losses) : losses);
  put(optimizer_.norm(), 2 * count);
}

void Trainer::read() {
  std::vector<Unread> steps = std::exchange(unread_, {});
  if (steps.empty()) return;
  for (Unread& step : steps) finish(step);
  const auto count = static_cast<double>(steps.size());
  const double seconds = seconds_since(steps.front().start) / count;
  double waited = 0;
  for (const Unread& step : steps) waited += step.report.waited / count;
  together_ = static_cast<std::size_t>(std::clamp(options_.together / seconds, 1.0, most_together));
  const auto bad = std::ranges::find_if(steps, [](const Unread& step) {
    return !std::isfinite(step.report.loss) || !std::isfinite(step.report.gradient_norm);
  });
  if (bad != steps.end()) step_ = bad->report.step - 1;  // neither it nor a later one did anything
  for (auto step = steps.begin(); step != bad; ++step) {
    step->report.seconds = seconds;
    step->report.waited = waited;
    if (hooks_.report) hooks_.report(step->report);
  }
  if (bad != steps.end()) not_finite(*bad);
}

void Trainer::finish(Unread& step) {
  const std::vector<double> numbers = step.numbers.to_doubles();
  const std::size_t count = step.shares.size();
  std::array<double, 2> sums{};  // loss, hits
  for (std::size_t i = 0; i < count; ++i) {
    sums[0] += step.shares[i] * numbers[i];
    sums[1] += step.shares[i] * numbers[count + i];
  }
  communicator_.sum(sums);
  step.report.loss = sums[0];
  if (step.choices) step.report.accuracy = sums[1];
  step.report.gradient_norm = numbers.back();
}

Loss Trainer::add_gradients(const PlacedBatch& part, const Tensor& share) {
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
  // A loss of any rank that is not finite makes the sum so.
  const Tensor sum(losses.backend(), {1}, losses.dtype());
  sum.backend()(
      Reduce{.reduction = Reduction::sum, .x = losses.reshape({1, losses.size()}), .y = sum});
  all.push_back(sum);
  communicator_.sum(all);
  return sum;
}

void Trainer::not_finite(const Unread& step) {
  std::string where;
  const auto look = [&](const std::string& name, const Tensor& x) {
    if (where.empty() && count_nonfinite(x) > 0) where = described(name, x);
  };
  // Neither this step nor a later one changed anything: taken again, it computes the same.
  for (const Parameter& p : model_.parameters().all()) look(p.name(), p.value());
  const auto watch = std::exchange(model_.watch, look);
  const Place place = place_for(step.parts, false);
  place.shares.assign(step.shares);
  for (std::size_t i = 0; i < step.parts.size(); ++i) {
    add_gradients(place.parts[i], place.shares.slice(static_cast<std::int64_t>(i), 1));
  }
  model_.watch = watch;
  if (communicator_.size() > 1) sum_over_ranks(place.shares);
  for (const Parameter& p : model_.parameters().all()) {
    if (const Tensor gradient = p.var().grad()) look("gradient of " + p.name(), gradient);
  }
  model_.parameters().clear_gradients();
  optimizer_.go_on();
  std::string kept;
  if (saved_) kept = text("; the checkpoint of step ", *saved_, " is kept");
  throw NotFinite(text("step ", step.report.step, ": loss ", step.report.loss, ", gradient norm ",
                       step.report.gradient_norm, "; first tensor that is not finite: ",
                       where.empty() ? "the loss" : where, kept));
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
  if (!score) return;
  if (writes()) store_->save_score(step_, *score);
  if (best_ && !(*score > *best_)) return;
  best_ = score;
  if (writes()) store_->mark_best(step_);
}

void Trainer::save() {
  read();
  if (!writes() || saved_ == step_) return;
  store_->save({.step = step_, .more = options_.metadata}, model_.parameters(), optimizer_);
  saved_ = step_;
  if (hooks_.saved) hooks_.saved(step_, store_->path(step_));
}

}  // namespace longhand::nn
