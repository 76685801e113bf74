#include "apps/run/attention_measures.h"

#include <algorithm>

#include "apps/run/mixer_views.h"
#include "apps/run/rollout.h"
#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "autograd/reduce.h"
#include "core/contract/combine.h"
#include "core/error.h"
#include "nn/mixer_core/head_weights.h"
#include "nn/models/decode.h"

namespace longhand::app {
namespace {

/// What one sample contributes to the measures: its number of tokens, of scored outputs (`asked`)
/// and of right predictions. `attention_score` is set if the task defines a reference attention for
/// the sample.
struct SampleMeasures {
  std::int64_t tokens = 0, asked = 0, right = 0;
  std::optional<double> attention_score = {};
};

/// The sum of -p ln p over all entries p of a matrix of attention weights. It is computed in blocks
/// of rows to save memory.
double entropy_of(const Tensor& weights) {
  constexpr std::int64_t entries_at_once = 1 << 18;
  const std::int64_t stride = std::max<std::int64_t>(1, entries_at_once / weights.columns());
  double sum = 0;
  for (std::int64_t first = 0; first < weights.rows(); first += stride) {
    const Var p = weights.slice(first, std::min(stride, weights.rows() - first));
    const Var logs = activate(Activation::log, maximum(p, number_like(p, 1e-30)));
    for (const double row : row_sum(p * logs).value().to_doubles()) sum -= row;
  }
  return sum;
}

/// Returns a matrix [tokens, tokens] for one sequence. Entry (i, j) is the weight of the value of
/// token j in output i of a layer's heads (nn::value_weights), averaged over these heads. Calls
/// `visit` with the attention weights of each head.
template <class F>
Tensor mean_of_heads(const nn::Decoder& model, std::int64_t layer,
                     const std::vector<nn::MixerView>& views, const Segments& sequences,
                     std::int64_t sequence, F visit) {
  Tensor sum;
  double heads = 0;
  for_each_mixer(
      model, layer, views, [&](std::int64_t, const nn::Mixer& mixer, const nn::MixerView& view) {
        for (std::int64_t h = 0; h < mixer.heads; ++h, ++heads) {
          const Tensor weights = attention_of(model, layer, mixer, view, sequences, sequence, h);
          visit(weights);
          const Tensor read = nn::value_weights(view, weights, h);
          if (!sum) {
            // Start with a copy: `read` may share the memory of `view`, and the sum is computed in
            // place.
            sum = scale(read, 1).value();
          } else {
            sum.backend()(Combine{.f = Combination::sum, .a = sum, .b = read, .y = sum});
          }
        }
      });
  return scale(sum, 1 / heads).value();
}

class Measuring {
 public:
  Measuring(nn::Decoder& model, const tasks::Task& task)
      : model_(model), task_(task), type_(master_type(model.activations())) {
    result_.heads = heads_of(model);
    std::int64_t layer = -1;
    for (std::size_t i = 0; i < result_.heads.size(); ++i) {
      const HeadScore& head = result_.heads[i];
      result_.entropies.push_back({head.layer, head.head});
      if (head.layer != layer) first_head_.push_back(i);
      layer = head.layer;
    }
  }

  void add(std::span<const tasks::Sample> samples) {
    const nn::Batch batch = batch_for(model_, task_, samples);
    const nn::Input input = nn::make_input(model_.backend(), batch);
    const std::vector<std::int32_t> said = nn::predict(model_, batch);
    const auto views = model_.look(input);
    std::size_t outputs = 0;
    for (std::size_t s = 0; s < samples.size(); ++s) {
      const tasks::Sample& sample = samples[s];
      const auto answers = std::span(said).subspan(outputs, sample.targets.size());
      outputs += sample.targets.size();
      SampleMeasures measures = answered(sample, answers);
      const ReferenceMask mask = reference_mask(task_, sample, model_.backend(), type_);
      std::optional<Rollout> rollout;
      if (mask.rows > 0) {
        rollout.emplace(model_.backend(), type_, measures.tokens, mask.first, mask.rows);
      }
      for (std::int64_t layer = model_.config().layers - 1; layer >= 0; --layer) {
        const Tensor mean = add_layer(layer, views[static_cast<std::size_t>(layer)], input.segments,
                                      static_cast<std::int64_t>(s), mask);
        if (rollout) rollout->add_earlier_layer(mean);
      }
      if (rollout) {
        measures.attention_score = add_scores(rollout->matrix(), mask, sample, answers);
      }
      rows_ += measures.tokens;
      samples_.push_back(measures);
    }
    LONGHAND_CHECK(std::ranges::any_of(samples_,
                                       [](const SampleMeasures& sample) {
                                         return sample.attention_score.has_value();
                                       }),
                   "the task's samples have no reference attention");
  }

  AttentionMeasures finish() && {
    result_.samples = std::ssize(samples_);
    sort_by_score(result_.heads);
    for (HeadEntropy& head : result_.entropies) {
      head.entropy /= static_cast<double>(rows_);
      result_.entropy.heads.add(head.entropy);
    }
    const auto [least, greatest] =
        std::ranges::minmax_element(result_.entropies, {}, &HeadEntropy::entropy);
    result_.entropy.least = least->entropy;
    result_.entropy.greatest = greatest->entropy;
    for (const SampleMeasures& sample : samples_) {
      if (sample.attention_score) result_.attention_score.add(*sample.attention_score);
    }
    result_.test = tasks::welch(result_.when_right, result_.when_wrong);
    sort_by_length();
    return std::move(result_);
  }

 private:
  /// Counts a sample's scored outputs, and the right predictions at these outputs.
  SampleMeasures answered(const tasks::Sample& sample, std::span<const std::int32_t> said) {
    SampleMeasures measures{.tokens = std::ssize(sample.tokens), .asked = std::ssize(sample.asked)};
    for (std::size_t place = 0; place < sample.asked.size(); ++place) {
      if (place == result_.places.size()) {
        result_.places.push_back({.place = static_cast<std::int64_t>(place)});
      }
      const auto output = static_cast<std::size_t>(sample.asked[place]);
      const bool right = said[output] == sample.targets[output];
      ++result_.places[place].count;
      result_.places[place].wrong += !right;
      measures.right += right;
    }
    return measures;
  }

  /// Adds the scores and entropies of a layer's heads in one sequence to the results. Returns the
  /// weights of the values, averaged over the heads (mean_of_heads).
  Tensor add_layer(std::int64_t layer, const std::vector<nn::MixerView>& views,
                   const Segments& sequences, std::int64_t sequence, const ReferenceMask& mask) {
    std::size_t head = first_head_[static_cast<std::size_t>(layer)];
    return mean_of_heads(model_, layer, views, sequences, sequence, [&](const Tensor& weights) {
      result_.entropies[head].entropy += entropy_of(weights);
      HeadScore& score = result_.heads[head++];
      if (mask.rows == 0) return;
      const Tensor rows = weights.slice(mask.first, mask.rows);
      for (const double on_reference : reference_sums(rows, mask)) score.rows.add(on_reference);
    });
  }

  /// Computes the attention score of each token for which the task has a reference attention. Adds
  /// the score to when_right if all predictions at the token are right, otherwise to when_wrong.
  /// Returns the mean of the scores.
  double add_scores(const Tensor& rollout, const ReferenceMask& mask, const tasks::Sample& sample,
                    std::span<const std::int32_t> said) {
    const std::vector<double> on_reference = reference_sums(rollout, mask);
    const std::int64_t counted = rollout.columns() - mask.first_column;
    const std::vector<double> all =
        row_sum(columns(rollout, mask.first_column, counted)).value().to_doubles();
    tasks::Moments scores;
    for (std::size_t i = 0; i < mask.counted.size(); ++i) {
      const std::int64_t row = mask.counted[i];
      const double score = on_reference[i] / all[static_cast<std::size_t>(row - mask.first)];
      (right_at(sample, said, row) ? result_.when_right : result_.when_wrong).add(score);
      scores.add(score);
    }
    return scores.mean;
  }

  /// True if all predictions at the token with index `token` are right.
  bool right_at(const tasks::Sample& sample, std::span<const std::int32_t> said,
                std::int64_t token) const {
    const auto groups = static_cast<std::size_t>(task_.outputs().groups);
    const std::size_t first = static_cast<std::size_t>(token) * groups;
    for (std::size_t o = first; o < first + groups; ++o) {
      if (sample.targets[o] != tasks::Sample::not_counted && said[o] != sample.targets[o]) {
        return false;
      }
    }
    return true;
  }

  void sort_by_length() {
    constexpr std::int64_t most_classes = 20;
    const auto [least, most] = std::ranges::minmax_element(samples_, {}, &SampleMeasures::tokens);
    const std::int64_t shortest = least->tokens;
    const std::int64_t width = (most->tokens - shortest) / most_classes + 1;
    std::vector<LengthScores> all(static_cast<std::size_t>((most->tokens - shortest) / width + 1));
    for (const SampleMeasures& sample : samples_) {
      if (sample.asked == 0) continue;
      LengthScores& scores = all[static_cast<std::size_t>((sample.tokens - shortest) / width)];
      ++scores.samples;
      scores.exact += sample.right == sample.asked;
      scores.asked += sample.asked;
      scores.right += sample.right;
      if (sample.attention_score) scores.attention_score.add(*sample.attention_score);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].samples == 0) continue;
      all[i].shortest = shortest + static_cast<std::int64_t>(i) * width;
      all[i].longest = all[i].shortest + width - 1;
      result_.lengths.push_back(all[i]);
    }
  }

  nn::Decoder& model_;
  const tasks::Task& task_;
  DType type_;
  std::vector<std::size_t> first_head_;  // for each layer: index of its first head among all heads
  std::int64_t rows_ = 0;                // number of tokens of all samples
  std::vector<SampleMeasures> samples_;
  AttentionMeasures result_;
};

}  // namespace

Tensor rollout_of(nn::Decoder& model, const nn::Input& sequence) {
  const std::int64_t count = sequence.ids.size();
  const auto views = model.look(sequence);
  Rollout rollout(model.backend(), master_type(model.activations()), count, 0, count);
  for (std::int64_t layer = model.config().layers - 1; layer >= 0; --layer) {
    rollout.add_earlier_layer(mean_of_heads(model, layer, views[static_cast<std::size_t>(layer)],
                                            sequence.segments, 0, [](const Tensor&) {}));
  }
  return rollout.matrix();
}

AttentionMeasures measure_attention(nn::Decoder& model, const tasks::Task& task,
                                    const EvaluationOptions& options) {
  EvaluationOptions together = options;
  if (together.tokens_at_once == 0) together.tokens_at_once = tokens_looked_at;
  Measuring measuring(model, task);
  for_samples(task, together,
              [&](std::span<const tasks::Sample> samples) { measuring.add(samples); });
  return std::move(measuring).finish();
}

}  // namespace longhand::app
