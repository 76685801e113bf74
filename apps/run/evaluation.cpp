#include "apps/run/evaluation.h"

#include <cstdio>
#include <vector>

#include "apps/run/batches.h"
#include "core/error.h"
#include "core/rng.h"

namespace longhand::app {
namespace {

/// The choice a model makes at every output of the samples, all tokens seen as they are.
std::vector<std::int32_t> forced_choices(nn::Decoder& model, const tasks::Task& task,
                                         std::span<const tasks::Sample> samples) {
  const nn::Batch batch = batch_of(samples, task);
  const nn::Input input = nn::make_input(model.backend(), batch.tokens, batch.lengths);
  const Tensor logits = model.logits(model.features(input), batch.head).value();
  const tasks::Outputs outputs = task.outputs();
  const Tensor choices = logits.reshape({logits.rows() * outputs.groups, outputs.classes});
  const Tensor said(model.backend(), {choices.rows()}, DType::i32);
  model.backend()(Argmax{.x = choices, .y = said});
  return said.to_ints();
}

}  // namespace

tasks::Tally evaluate(nn::Decoder& model, const tasks::Task& task,
                      const EvaluationOptions& options) {
  tasks::Tally tally;
  std::vector<tasks::Sample> samples;
  std::int64_t tokens = 0;
  const auto flush = [&] {
    if (samples.empty()) return;
    const std::vector<std::int32_t> choices = forced_choices(model, task, samples);
    std::size_t first = 0;  // the sample's first output among all
    for (const tasks::Sample& sample : samples) {
      std::vector<std::int32_t> said;
      for (const std::int32_t output : sample.asked) {
        said.push_back(choices[first + static_cast<std::size_t>(output)]);
      }
      task.score(sample, said, tally);
      first += sample.targets.size();
    }
    samples.clear();
    tokens = 0;
  };
  for (std::int64_t i = 0; i < options.samples; ++i) {
    Rng rng(options.seed, Purpose::evaluation, 0, static_cast<std::uint32_t>(i));
    samples.push_back(task.sample(rng, 0));
    tokens += static_cast<std::int64_t>(samples.back().tokens.size());
    if (tokens >= options.tokens_at_once) flush();
  }
  flush();
  return tally;
}

std::string text_of(const tasks::Metric& metric) {
  char buffer[64];
  if (metric.is_share) {
    const tasks::Interval interval = tasks::wilson(metric.sum, static_cast<double>(metric.count));
    std::snprintf(buffer, sizeof buffer, "%.4f [%.4f, %.4f]", metric.mean(), interval.low,
                  interval.high);
  } else {
    std::snprintf(buffer, sizeof buffer, "%.4f", metric.mean());
  }
  return buffer;
}

}  // namespace longhand::app
