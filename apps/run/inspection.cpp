#include "apps/run/inspection.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <utility>

#include "apps/html/chart.h"
#include "apps/html/heat_map.h"
#include "apps/html/page.h"
#include "apps/run/mixer_views.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/rng.h"
#include "nn/mixer_core/head_weights.h"
#include "nn/mixers/fal.h"

namespace longhand::app {
namespace {

std::string title(const HeadView& view) { return text("Layer ", view.layer, ", head ", view.head); }

}  // namespace

std::string token_label(const tasks::Vocabulary& vocabulary, std::int32_t token) {
  constexpr std::pair<char, std::string_view> marks[] = {
      {' ', "\u00b7"}, {'\n', "\u21b5"}, {'\t', "\u21e5"}, {'\r', "\u240d"}};
  const std::string text = vocabulary.text(token);
  if (text.empty()) return "#" + std::to_string(token);  // a token without text shows its number
  std::string label, rest;
  const auto end_rest = [&] {
    label += printable(rest);
    rest.clear();
  };
  for (const char c : text) {
    const auto* const mark = std::ranges::find(marks, c, &std::pair<char, std::string_view>::first);
    if (mark == std::end(marks)) {
      rest += c;
    } else {
      end_rest();
      label += mark->second;
    }
  }
  end_rest();
  return label;
}

std::vector<std::string> labels(const tasks::Task& task, std::span<const std::int32_t> tokens) {
  std::vector<std::string> all;
  for (const std::int32_t token : tokens) all.push_back(token_label(task.vocabulary(), token));
  return all;
}

std::string side_by_side(const std::string& figures) {
  return "<div style=\"display:flex;flex-wrap:wrap;gap:1rem\">" + figures + "</div>\n";
}

std::map<std::string, Tensor> watched(nn::Decoder& model, const nn::Input& input,
                                      std::string_view part) {
  std::map<std::string, Tensor> seen;
  struct Restore {
    nn::Decoder& model;
    decltype(model.watch) before;
    ~Restore() { model.watch = before; }
  } restore{model, model.watch};
  model.watch = [&](const std::string& name, const Tensor& x) {
    if (name.find(part) != std::string::npos) seen[name] = x;
  };
  model.features(input);
  return seen;
}

std::vector<FalShare> fal_shares(nn::Decoder& model, const tasks::Task& task,
                                 const EvaluationOptions& options) {
  std::vector<FalShare> shares;
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    std::int64_t head = 0;
    for (const nn::AnyMixer& mixer : model.block(layer).mixing.mixers()) {
      const bool selects = dynamic_cast<const nn::FalHeads*>(&*mixer) != nullptr;
      for (std::int64_t h = 0; h < mixer->heads; ++h, ++head) {
        if (selects) shares.push_back({layer, head});
      }
    }
  }
  if (shares.empty()) return shares;
  for_samples(task, options, [&](std::span<const tasks::Sample> samples) {
    const nn::Input input = input_for(model, task, samples);
    auto share = shares.begin();
    for_each_mixer(
        model, model.look(input),
        [&](std::int64_t, std::int64_t, const nn::Mixer& mixer, const nn::MixerView& view) {
          if (!view.selected) return;
          const std::vector<std::int32_t> matches = view.selected.to_ints();
          std::int64_t begin = 0;
          for (const tasks::Sample& sample : samples) {
            for (const tasks::ReferenceRow& row : task.reference(sample)) {
              if (row.columns.empty()) continue;
              for (std::int64_t h = 0; h < mixer.heads; ++h) {
                const std::int64_t at = (begin + row.row) * mixer.heads + h;
                const std::int32_t match = matches[static_cast<std::size_t>(at)];
                ++share[h].count;
                share[h].hits += match >= 0 && match + 1 == row.columns.back();
              }
            }
            begin += static_cast<std::int64_t>(sample.tokens.size());
          }
          share += mixer.heads;
        });
  });
  return shares;
}

std::vector<HeadView> look_inside(nn::Decoder& model, const nn::Input& sequence) {
  const std::int64_t count = sequence.ids.size();
  const DType type = master_type(model.activations());
  std::vector<HeadView> all;
  for_each_mixer(
      model, model.look(sequence),
      [&](std::int64_t layer, std::int64_t first, const nn::Mixer& mixer,
          const nn::MixerView& view) {
        std::vector<std::int32_t> matches;
        if (view.selected) matches = view.selected.to_ints();
        for (std::int64_t h = 0; h < mixer.heads; ++h) {
          HeadView head{.layer = layer, .head = first + h};
          if (view.selected) {
            for (std::int64_t t = 0; t < count; ++t) {
              head.selected.push_back(matches[static_cast<std::size_t>(t * mixer.heads + h)]);
            }
          }
          if (view.scores || view.weights) {
            head.weights = nn::head_weights(view, sequence.segments, 0, h, type).to_doubles();
          }
          all.push_back(std::move(head));
        }
      });
  return all;
}

std::string selection_pictures(const tasks::Task& task, const tasks::Sample& sample,
                               const std::vector<HeadView>& views) {
  std::string content;
  for (const HeadView& view : views) {
    if (view.selected.empty()) continue;
    const std::size_t count = view.selected.size();
    std::vector<bool> asked(count);
    for (const std::int32_t output : sample.asked) {
      if (static_cast<std::size_t>(output) < count) asked[static_cast<std::size_t>(output)] = true;
    }
    content +=
        html::figure(html::arcs({.tokens = labels(task, std::span(sample.tokens).first(count)),
                                 .selected = view.selected,
                                 .marked = asked}),
                     title(view) +
                         ": arcs from each token (below) to the last earlier key with a positive "
                         "score (above). Arcs of scored tokens are strong.");
  }
  return content;
}

std::string attention_maps(const tasks::Task& task, const tasks::Sample& sample,
                           const std::vector<HeadView>& views) {
  std::string content;
  for (const HeadView& view : views) {
    if (view.weights.empty()) continue;
    std::size_t count = 0;
    while (count * count < view.weights.size()) ++count;
    const auto names = labels(task, std::span(sample.tokens).first(count));
    content += html::figure(html::heat_map({.rows = names,
                                            .columns = names,
                                            .height = static_cast<std::int64_t>(count),
                                            .width = static_cast<std::int64_t>(count),
                                            .values = view.weights}),
                            title(view));
  }
  if (content.empty()) return content;
  return html::colour_scale(1, "weight of a column's token for a row's") + side_by_side(content);
}

std::string shares_table(const std::vector<FalShare>& shares) {
  std::vector<std::vector<std::string>> rows;
  for (const FalShare& share : shares) {
    const auto interval =
        tasks::wilson(static_cast<double>(share.hits), static_cast<double>(share.count));
    char figures[3][32];
    const double mean =
        share.count ? static_cast<double>(share.hits) / static_cast<double>(share.count) : 0;
    const double all[3] = {mean, interval.low, interval.high};
    for (int i = 0; i < 3; ++i) std::snprintf(figures[i], sizeof figures[i], "%.4f", all[i]);
    rows.push_back({text("layer ", share.layer), text("head ", share.head), figures[0],
                    text(figures[1], " to ", figures[2]), std::to_string(share.count)});
  }
  return html::table({"layer", "head", "share", "95%", "of"}, rows);
}

}  // namespace longhand::app
