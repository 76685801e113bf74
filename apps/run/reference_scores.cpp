#include "apps/run/reference_scores.h"

#include <algorithm>

#include "apps/run/mixer_views.h"
#include "autograd/combine.h"
#include "autograd/reduce.h"
#include "core/error.h"
#include "nn/mixer_core/head_weights.h"

namespace longhand::app {

ReferenceMask reference_mask(const tasks::Task& task, const tasks::Sample& sample, Backend& backend,
                             DType type) {
  ReferenceMask mask;
  std::vector<tasks::ReferenceRow> rows = task.reference(sample);
  std::erase_if(rows, [](const tasks::ReferenceRow& row) { return row.columns.empty(); });
  if (rows.empty()) return mask;
  mask.first = rows.front().row;
  mask.rows = rows.back().row - mask.first + 1;
  mask.first_column = task.instruction_tokens();
  const auto tokens = static_cast<std::int64_t>(sample.tokens.size());
  std::vector<double> entries(static_cast<std::size_t>(mask.rows * tokens));
  for (const tasks::ReferenceRow& row : rows) {
    mask.counted.push_back(row.row);
    for (const std::int32_t column : row.columns) {
      entries[static_cast<std::size_t>((row.row - mask.first) * tokens + column)] = 1;
    }
  }
  mask.entries = Tensor::from(backend, {mask.rows, tokens}, type, entries);
  return mask;
}

std::vector<double> reference_sums(const Tensor& matrix, const ReferenceMask& mask) {
  const std::vector<double> all = row_sum(multiply(matrix, mask.entries)).value().to_doubles();
  std::vector<double> counted;
  for (const std::int32_t row : mask.counted) {
    counted.push_back(all[static_cast<std::size_t>(row - mask.first)]);
  }
  return counted;
}

std::vector<HeadScore> heads_of(const nn::Decoder& model) {
  std::vector<HeadScore> heads;
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    std::int64_t head = 0;
    for (const nn::AnyMixer& mixer : model.block(layer).mixing.mixers()) {
      for (std::int64_t h = 0; h < mixer->heads; ++h) heads.push_back({layer, head++});
    }
  }
  return heads;
}

void sort_by_score(std::vector<HeadScore>& heads) {
  std::ranges::stable_sort(heads, std::greater(), &HeadScore::score);
}

Tensor attention_of(const nn::Decoder& model, std::int64_t layer, const nn::Mixer& mixer,
                    const nn::MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head) {
  const Tensor weights =
      nn::head_weights(view, sequences, sequence, head, master_type(model.activations()));
  LONGHAND_CHECK(weights, "attention: the ", mixer.kind(), " heads of layer ", layer,
                 " have no attention weights");
  return weights;
}

std::vector<HeadScore> rank_heads(nn::Decoder& model, const tasks::Task& task,
                                  const EvaluationOptions& options) {
  std::vector<HeadScore> heads = heads_of(model);
  const DType type = master_type(model.activations());
  EvaluationOptions together = options;
  if (together.tokens_at_once == 0) together.tokens_at_once = tokens_looked_at;
  for_samples(task, together, [&](std::span<const tasks::Sample> samples) {
    std::vector<ReferenceMask> masks;
    for (const tasks::Sample& sample : samples) {
      masks.push_back(reference_mask(task, sample, model.backend(), type));
    }
    LONGHAND_CHECK(std::ranges::any_of(masks, &ReferenceMask::rows),
                   "the task defines no reference attention for these samples");
    const nn::Input input = input_for(model, task, samples);
    auto score = heads.begin();
    for_each_mixer(
        model, model.look(input),
        [&](std::int64_t layer, std::int64_t, const nn::Mixer& mixer, const nn::MixerView& view) {
          for (std::int64_t h = 0; h < mixer.heads; ++h, ++score) {
            for (std::size_t s = 0; s < masks.size(); ++s) {
              const ReferenceMask& mask = masks[s];
              if (mask.rows == 0) continue;
              const Tensor weights = attention_of(model, layer, mixer, view, input.segments,
                                                  static_cast<std::int64_t>(s), h);
              const Tensor rows = weights.slice(mask.first, mask.rows);
              for (const double sum : reference_sums(rows, mask)) score->rows.add(sum);
            }
          }
        });
  });
  sort_by_score(heads);
  return heads;
}

}  // namespace longhand::app
