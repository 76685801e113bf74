#include "apps/run/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numbers>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/batches.h"
#include "core/error.h"
#include "core/rng.h"
#include "nn/models/decode.h"
#include "nn/training/interruption.h"

namespace longhand::app {
namespace {

using Tokens = std::vector<std::int32_t>;

using Reference = std::vector<nn::ReferencePair>;

/// The reference attention of each sample, as pairs (token, token that it should attend to).
/// Reinforced heads increase the attention weights of these pairs. The result is empty if the model
/// has no reinforced heads.
std::vector<Reference> references(const nn::Decoder& model, const tasks::Task& task,
                                  std::span<const tasks::Sample> samples) {
  if (!model.wants_reference()) return {};
  std::vector<Reference> all(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const tasks::ReferenceRow& row : task.reference(samples[i])) {
      const std::set<std::int32_t> columns(row.columns.begin(), row.columns.end());
      for (const std::int32_t column : columns) all[i].push_back({row.row, column});
    }
  }
  LONGHAND_CHECK(!std::ranges::all_of(all, &Reference::empty),
                 "reinforced heads: expected reference attention, but the task defines no "
                 "reference attention for these samples");
  return all;
}

}  // namespace

nn::Batch batch_for(const nn::Decoder& model, const tasks::Task& task,
                    std::span<const tasks::Sample> samples) {
  nn::Batch batch = batch_of(samples, task);
  std::int32_t begin = 0;
  const std::vector<Reference> all = references(model, task, samples);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const auto& [row, position] : all[i]) batch.reference.push_back({begin + row, position});
    begin += batch.lengths[i];
  }
  return batch;
}

nn::Input input_for(const nn::Decoder& model, const tasks::Task& task,
                    std::span<const tasks::Sample> samples) {
  return nn::make_input(model.backend(), batch_for(model, task, samples));
}

nn::Input beginning_for(const nn::Decoder& model, const tasks::Task& task,
                        const tasks::Sample& sample, std::size_t most) {
  const auto count = std::min(most, sample.tokens.size());
  nn::Batch batch = batch_for(model, task, {&sample, 1});
  batch.tokens.resize(count);
  batch.lengths = {static_cast<std::int32_t>(count)};
  if (!batch.positions.empty()) batch.positions.resize(count);
  std::erase_if(batch.reference,
                [&](const nn::ReferencePair& pair) { return pair.row >= batch.lengths.front(); });
  return nn::make_input(model.backend(), batch);
}

namespace {

/// The model's predictions at the scored outputs of each sample, under teacher forcing.
std::vector<Tokens> forced(nn::Decoder& model, const tasks::Task& task,
                           std::span<const tasks::Sample> samples) {
  const Tokens choices = nn::predict(model, batch_for(model, task, samples));
  std::vector<Tokens> said(samples.size());
  std::size_t first = 0;  // index of the sample's first output among the outputs of all samples
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const std::int32_t output : samples[i].asked) {
      said[i].push_back(choices[first + static_cast<std::size_t>(output)]);
    }
    first += samples[i].targets.size();
  }
  return said;
}

std::vector<Tokens> decoded(nn::Decoder& model, const tasks::Task& task,
                            std::span<const tasks::Sample> samples) {
  LONGHAND_CHECK(
      task.outputs().says_next,
      "decoding: expected a task that predicts the next token, because other tasks do not generate "
      "tokens");
  std::vector<Tokens> sequences, asked, positions;
  for (const tasks::Sample& sample : samples) {
    sequences.push_back(sample.tokens);
    asked.push_back(sample.asked);
    if (!sample.positions.empty()) positions.push_back(sample.positions);
  }
  return nn::decode_asked(model, sequences, asked, samples[0].head,
                          references(model, task, samples), positions);
}

/// Adds to `loss` the losses in nats of the samples' scored targets, under teacher forcing.
void add_losses(LossSum& loss, nn::Decoder& model, const tasks::Task& task,
                std::span<const tasks::Sample> samples) {
  const nn::Batch batch = batch_for(model, task, samples);
  loss.sum += model.loss_of(batch).value.value().item() * batch.total_weight();
  loss.weight += batch.total_weight();
}

/// Element i of a list of `wanted` evenly spaced indices from 0 to count - 1. It equals i * count /
/// wanted, rounded down.
std::uint64_t place_among(std::uint64_t i, std::uint64_t wanted, std::uint64_t count) {
  // The product i * count could overflow, so `count` is divided first.
  return i * (count / wanted) + i * (count % wanted) / wanted;
}

std::int64_t tokens_in_cache(const nn::Decoder& model) {
  std::int64_t bytes = 0;             // bytes per token for the keys and values of all layers
  constexpr std::int64_t least = 64;  // assumed minimum number of tokens of a sequence
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    for (const nn::AnyMixer& mixer : model.config().mixers_of(layer)) {
      bytes += 4 * (mixer->cached_columns() + mixer->cached_numbers());
      for (const std::int64_t numbers : mixer->cached_memories()) bytes += 4 * numbers / least;
    }
  }
  return std::clamp((std::int64_t{256} << 20) / std::max<std::int64_t>(1, bytes),
                    std::int64_t{1024}, std::int64_t{65536});
}

}  // namespace

std::optional<Reading> reading_from_name(std::string_view name) {
  if (name == "forced") return Reading::forced;
  if (name == "decoded") return Reading::decoded;
  return std::nullopt;
}

void for_samples(const tasks::Task& task, const EvaluationOptions& options,
                 const std::function<void(std::span<const tasks::Sample>)>& body) {
  const std::int64_t most = options.tokens_at_once ? options.tokens_at_once : 8192;
  std::vector<tasks::Sample> samples;
  std::int64_t tokens = 0;
  const std::uint64_t numbered = task.count();
  auto wanted = static_cast<std::uint64_t>(options.samples);
  if (numbered > 0) wanted = std::min(wanted, numbered);
  for (std::uint64_t i = 0; i < wanted; ++i) {
    if (numbered > 0) {
      samples.push_back(task.sample_at(place_among(i, wanted, numbered), 0));
    } else {
      Rng rng(options.seed, Purpose::evaluation, 0, static_cast<std::uint32_t>(i));
      samples.push_back(task.sample(rng, options.head));
    }
    tokens += static_cast<std::int64_t>(samples.back().tokens.size());
    if (tokens < most && i + 1 < wanted) continue;
    body(samples);
    samples.clear();
    tokens = 0;
  }
}

namespace {

/// A model's predictions for samples that it read as one group. `loss` is set only if the targets
/// are text.
struct Answers {
  std::vector<Tokens> said;
  LossSum loss;
};

Answers answers_to(std::span<const tasks::Sample> samples, nn::Decoder& model,
                   const tasks::Task& task, Reading reading) {
  Answers answers{.said = std::vector<Tokens>(samples.size()), .loss = {}};
  if (std::ranges::any_of(samples, [](const auto& sample) { return !sample.asked.empty(); })) {
    answers.said =
        reading == Reading::forced ? forced(model, task, samples) : decoded(model, task, samples);
  }
  if (std::ranges::any_of(samples, [&](const auto& s) { return task.target_bytes(s) > 0; })) {
    add_losses(answers.loss, model, task, samples);
  }
  return answers;
}

template <class T>
void append(std::string& bytes, const T* values, std::size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

std::string bytes_of(const Answers& answers) {
  std::string bytes;
  append(bytes, &answers.loss, 1);
  for (const Tokens& said : answers.said) {
    const std::uint64_t count = said.size();
    append(bytes, &count, 1);
    append(bytes, said.data(), said.size());
  }
  return bytes;
}

/// Reads the predictions for one group of samples in the format of bytes_of(), and removes them
/// from the front of `bytes`.
Answers take_answers(std::string_view& bytes, std::size_t samples) {
  const auto take = [&](void* to, std::size_t count) {
    LONGHAND_CHECK(count <= bytes.size(), "evaluation: expected another rank's answers to ",
                   samples, " samples, got fewer answers");
    std::memcpy(to, bytes.data(), count);
    bytes.remove_prefix(count);
  };
  Answers answers{.said = std::vector<Tokens>(samples), .loss = {}};
  take(&answers.loss, sizeof answers.loss);
  for (Tokens& said : answers.said) {
    std::uint64_t count = 0;
    take(&count, sizeof count);
    LONGHAND_CHECK(
        count <= bytes.size(),
        "evaluation: expected all tokens of another rank's answer, got only a part of them");
    said.resize(count);
    if (count > 0) take(said.data(), count * sizeof said[0]);
  }
  return answers;
}

/// Distributes the evaluation of groups of samples over n ranks: rank r reads the groups r, r + n,
/// r + 2n, ... Element r of the result contains the predictions for these groups, in the format of
/// bytes_of().
std::vector<std::string> read_on_ranks(nn::Communicator& ranks, nn::Decoder& model,
                                       const tasks::Task& task, const EvaluationOptions& options) {
  std::string mine;
  bool left = false;
  ranks.together([&] {
    std::int64_t group = 0;
    try {
      for_samples(task, options, [&](std::span<const tasks::Sample> samples) {
        if (group++ % ranks.size() != ranks.rank()) return;
        mine += bytes_of(answers_to(samples, model, task, options.reading));
      });
    } catch (const nn::Interrupted&) {
      left = true;
    }
  });
  if (ranks.any(left)) throw nn::Interrupted();
  return ranks.gather(std::string_view(mine));
}

}  // namespace

tasks::Tally evaluate(nn::Decoder& model, const tasks::Task& task,
                      const EvaluationOptions& options) {
  tasks::Tally tally;
  EvaluationOptions together = options;
  if (options.reading == Reading::decoded && options.tokens_at_once == 0) {
    together.tokens_at_once = tokens_in_cache(model);
  }
  nn::Communicator& ranks = *options.ranks;
  std::vector<std::string> read;
  if (ranks.size() > 1) read = read_on_ranks(ranks, model, task, together);
  std::vector<std::string_view> left(read.begin(), read.end());
  std::size_t group = 0;
  LossSum loss;
  std::int64_t bytes = 0;
  bool is_asked = false;
  for_samples(task, together, [&](std::span<const tasks::Sample> samples) {
    const Answers answers = left.empty()
                                ? answers_to(samples, model, task, options.reading)
                                : take_answers(left[group++ % left.size()], samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      task.score(samples[i], answers.said[i], tally);
      bytes += task.target_bytes(samples[i]);
      is_asked = is_asked || !samples[i].asked.empty();
    }
    loss.sum += answers.loss.sum;
    loss.weight += answers.loss.weight;
    if (options.told) options.told(samples, answers.said);
  });
  // In a plain text no output is an answer, so there is nothing to decode. `bytes` is 0 if the task
  // is not text (Task::target_bytes).
  LONGHAND_CHECK(is_asked || bytes == 0 || options.reading == Reading::forced,
                 "decoding: expected samples with answers, such as records {\"prompt\", "
                 "\"answer\"}; a plain text has no answers to decode");
  if (bytes > 0) {
    tally.add_ratio("loss", loss.sum, std::llround(loss.weight));
    tally.add_ratio("perplexity", std::exp(loss.mean()), 1);
    tally.add_ratio("bits_per_byte", loss.sum / std::numbers::ln2, bytes);
  }
  return tally;
}

std::vector<std::string> metric_names(const tasks::Task& task, const EvaluationOptions& options) {
  tasks::Tally tally;
  bool is_text = false;
  for_samples(task, options, [&](std::span<const tasks::Sample> samples) {
    for (const tasks::Sample& sample : samples) {
      Tokens right;
      for (const std::int32_t output : sample.asked) {
        right.push_back(sample.targets[static_cast<std::size_t>(output)]);
      }
      task.score(sample, right, tally);
      is_text = is_text || task.target_bytes(sample) > 0;
    }
  });
  std::vector<std::string> names;
  for (const tasks::Metric& metric : tally.metrics()) names.push_back(metric.name);
  if (is_text) names.insert(names.end(), {"loss", "perplexity", "bits_per_byte"});
  return names;
}

double evaluate_loss(nn::Decoder& model, const tasks::Task& task,
                     const EvaluationOptions& options) {
  LossSum loss;
  for_samples(task, options, [&](std::span<const tasks::Sample> samples) {
    add_losses(loss, model, task, samples);
  });
  return loss.mean();
}

std::vector<LossSum> evaluate_losses(nn::Decoder& model, const tasks::Task& task,
                                     const EvaluationOptions& options) {
  std::vector<LossSum> losses;
  EvaluationOptions one_by_one = options;
  one_by_one.tokens_at_once = 1;
  for_samples(task, one_by_one, [&](std::span<const tasks::Sample> samples) {
    add_losses(losses.emplace_back(), model, task, samples);
  });
  return losses;
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
