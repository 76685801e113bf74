#include "apps/run/sample_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/run/token_arrays.h"
#include "core/error.h"

namespace longhand::app {
namespace {

constexpr double no_score = std::numeric_limits<double>::quiet_NaN();

NamedTensor column(const std::string& name, Backend& host, const std::vector<double>& values) {
  return {name, Tensor::from(host, {std::ssize(values)}, DType::f64, values)};
}

/// Calls body(row, logits of the row) for every row of `logits`. The rows are copied to the host in
/// blocks.
template <class Body>
void for_rows(const Tensor& logits, Body body) {
  constexpr std::int64_t at_once = 64;
  const auto columns = static_cast<std::size_t>(logits.columns());
  for (std::int64_t first = 0; first < logits.rows(); first += at_once) {
    const std::int64_t count = std::min(at_once, logits.rows() - first);
    const std::vector<double> some = logits.slice(first, count).to_doubles();
    for (std::int64_t row = 0; row < count; ++row) {
      body(first + row, std::span(some).subspan(static_cast<std::size_t>(row) * columns, columns));
    }
  }
}

double log_sum_exp(std::span<const double> x) {
  const double largest = std::ranges::max(x);
  double sum = 0;
  for (const double one : x) sum += std::exp(one - largest);
  return largest + std::log(sum);
}

/// Makes the next token of the sequence the target of every token.
void want_next_tokens(nn::Batch& batch) {
  batch.targets.assign(batch.tokens.size(), tasks::Sample::not_counted);
  std::size_t first = 0;
  for (const std::int32_t length : batch.lengths) {
    const auto end = first + static_cast<std::size_t>(length);
    for (std::size_t i = first; i + 1 < end; ++i) batch.targets[i] = batch.tokens[i + 1];
    first = end;
  }
}

void require_fits(const nn::Batch& batch, const nn::Decoder& model, const tasks::Task& task) {
  const tasks::Outputs outputs = task.outputs();
  LONGHAND_CHECK(batch.groups == outputs.groups, "targets: expected ", outputs.groups,
                 " targets for each token, got ", batch.groups);
  for (const std::int32_t target : batch.targets) {
    LONGHAND_CHECK(target < outputs.classes, "targets: expected classes below ", outputs.classes,
                   ", got ", target);
  }
  LONGHAND_CHECK(batch.head >= 0 && batch.head < model.outputs(),
                 "head: expected a number from 0 to ", model.outputs() - 1, ", got ", batch.head);
  LONGHAND_CHECK(!model.wants_reference(),
                 "tokens: expected a run without reinforced heads, because arrays of tokens do "
                 "not state which tokens these heads should attend to");
}

}  // namespace

void SampleScores::add(std::span<const tasks::Sample> samples,
                       std::span<const std::vector<std::int32_t>> said) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const tasks::Sample& sample = samples[i];
    tokens_.push_back(sample.tokens);
    asked_.push_back(sample.asked);
    said_.push_back(said[i]);
    wanted_.emplace_back();
    for (const std::int32_t output : sample.asked) {
      wanted_.back().push_back(sample.targets[static_cast<std::size_t>(output)]);
    }
    tasks::Tally own;
    task_.score(sample, said[i], own);
    for (const tasks::Metric& metric : own.metrics()) {
      auto& scores = scores_[metric.name];
      scores.resize(tokens_.size(), no_score);
      if (metric.count > 0) scores.back() = metric.mean();
    }
    const nn::Batch batch = batch_for(model_, task_, {&sample, 1});
    const bool counts = batch.total_weight() > 0;
    losses_.push_back(counts ? model_.loss_of(batch).value.value().item() : no_score);
  }
  if (wants_logits_) add_logits(samples);
}

void SampleScores::add_logits(std::span<const tasks::Sample> samples) {
  const nn::Input input = input_for(model_, task_, samples);
  const Tensor logits = model_.logits(model_.features(input), samples[0].head).value();
  const tasks::Outputs outputs = task_.outputs();
  std::int64_t first = 0;  // index of the sample's first row
  for (const tasks::Sample& sample : samples) {
    for (const std::int32_t output : sample.asked) {
      const std::vector<double> row = logits.slice(first + output / outputs.groups, 1).to_doubles();
      const auto begin = row.begin() + output % outputs.groups * outputs.classes;
      logits_.insert(logits_.end(), begin, begin + outputs.classes);
    }
    first += std::ssize(sample.tokens);
  }
}

std::vector<NamedTensor> SampleScores::arrays(Backend& host) const {
  std::vector<NamedTensor> all;
  const auto named = [&](const char* what) { return name_ + "." + what; };
  add_lists(all, host, named("tokens"), named("lengths"), tokens_);
  add_lists(all, host, named("asked"), named("asked_lengths"), asked_);
  for (const auto& [what, lists] : {std::pair{"said", &said_}, {"wanted", &wanted_}}) {
    add_lists(all, host, named(what), {}, *lists);
    all.pop_back();  // removes the array of lengths, which is equal to NAME.asked_lengths
  }
  all.push_back(column(named("losses"), host, losses_));
  for (auto [metric, scores] : scores_) {
    scores.resize(tokens_.size(), no_score);
    all.push_back(column(named("scores.") + metric, host, scores));
  }
  if (wants_logits_) {
    const std::int64_t classes = task_.outputs().classes;
    const Shape shape = {std::ssize(logits_) / classes, classes};
    all.push_back({named("logits"), Tensor::from(host, shape, DType::f32, logits_)});
  }
  return all;
}

TokenScores score_tokens(nn::Decoder& model, const tasks::Task& task,
                         std::vector<nn::Batch> batches, Backend& host, bool logits) {
  TokenScores scores;
  const tasks::Outputs outputs = task.outputs();
  std::vector<std::int32_t> tokens, lengths, targets, said;
  std::vector<double> losses, kept;
  double sum = 0, weights = 0;
  std::int64_t hits = 0, counted = 0;
  for (nn::Batch& batch : batches) {
    if (batch.targets.empty()) {
      LONGHAND_CHECK(
          outputs.says_next,
          "targets: expected a target for each token, got no targets; only a run that predicts the "
          "next token needs no targets");
      want_next_tokens(batch);
    }
    require_fits(batch, model, task);
    const nn::Input input = nn::make_input(model.backend(), batch);
    const Tensor all = model.logits(model.features(input), batch.head).value();
    for_rows(all, [&](std::int64_t row, std::span<const double> numbers) {
      for (std::int64_t group = 0; group < outputs.groups; ++group) {
        const auto one = numbers.subspan(static_cast<std::size_t>(group * outputs.classes),
                                         static_cast<std::size_t>(outputs.classes));
        const auto at = static_cast<std::size_t>(row * outputs.groups + group);
        const std::int32_t target = batch.targets[at];
        said.push_back(static_cast<std::int32_t>(std::ranges::max_element(one) - one.begin()));
        losses.push_back(no_score);
        if (target < 0) continue;
        losses.back() = log_sum_exp(one) - one[static_cast<std::size_t>(target)];
        const double weight = batch.weights.empty() ? 1 : batch.weights[at];
        sum += weight * losses.back();
        weights += weight;
        hits += said.back() == target;
        ++counted;
      }
      if (logits) kept.insert(kept.end(), numbers.begin(), numbers.end());
    });
    tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
    lengths.insert(lengths.end(), batch.lengths.begin(), batch.lengths.end());
    targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
  }
  const double mean = weights > 0 ? sum / weights : 0;
  scores.tally.add_share("tokens", hits, counted);
  scores.tally.add_value("loss", mean);
  scores.tally.add_value("perplexity", std::exp(mean));
  const auto add = [&](const char* name, const Shape& shape, const std::vector<std::int32_t>& of) {
    scores.arrays.push_back({name, Tensor::from(host, shape, of)});
  };
  const auto count = std::ssize(tokens);
  const Shape choices = {count, outputs.groups};
  add("tokens", {count}, tokens);
  add("lengths", {std::ssize(lengths)}, lengths);
  add("targets", choices, targets);
  add("said", choices, said);
  scores.arrays.push_back({"losses", Tensor::from(host, choices, DType::f64, losses)});
  if (logits) {
    const Shape shape = {count, outputs.groups * outputs.classes};
    scores.arrays.push_back({"logits", Tensor::from(host, shape, DType::f32, kept)});
  }
  return scores;
}

}  // namespace longhand::app
