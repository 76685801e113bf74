#include "apps/run/reinforcement.h"

#include <algorithm>

#include "apps/run/learning.h"
#include "core/error.h"
#include "nn/mixers/softmax.h"

namespace longhand::app {
namespace {

/// A head of a layer, found by its index among all heads of the layer.
struct FoundHead {
  const nn::SoftmaxHeads* mixer = nullptr;  // the head's mixer; null if it is not a softmax head
  std::int64_t head = 0;                    // index of the head within its mixer
};
FoundHead find(const nn::Decoder& model, const HeadScore& wanted) {
  std::int64_t head = wanted.head;
  for (const nn::AnyMixer& mixer : model.block(wanted.layer).mixing.mixers()) {
    if (head < mixer->heads) return {dynamic_cast<const nn::SoftmaxHeads*>(&*mixer), head};
    head -= mixer->heads;
  }
  fail("reinforcement: layer ", wanted.layer, " has no head ", wanted.head);
}

/// Sets the reinforcement of every softmax head: `amount` for the given heads, 0 for all others.
void set_amounts(const nn::Decoder& model, std::span<const HeadScore> heads, double amount) {
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    for (const nn::AnyMixer& mixer : model.block(layer).mixing.mixers()) {
      const auto* const softmax = dynamic_cast<const nn::SoftmaxHeads*>(&*mixer);
      if (!softmax) continue;
      std::vector<double> amounts(static_cast<std::size_t>(softmax->heads));
      for (const HeadScore& chosen : heads) {
        if (chosen.layer != layer) continue;
        const FoundHead found = find(model, chosen);
        if (found.mixer == softmax) amounts[static_cast<std::size_t>(found.head)] = amount;
      }
      softmax->reinforcement().value().assign(amounts);
    }
  }
}

}  // namespace

Config reinforced(const Config& run, std::string_view task, double threshold) {
  Config config = Config::from_run(run, task);
  nn::DecoderConfig model = config.model(*config.task());
  LONGHAND_CHECK(nn::has_kind(model.mixers, "softmax"),
                 "repair: expected a run with softmax heads, got ", nn::text_of(model.mixers));
  nn::set_option(model.mixers, "reinforce", nn::shortest(threshold));
  config.set_model(model);
  config.set("training.steps", "0");
  return config;
}

std::unique_ptr<nn::Decoder> reinforced_model(const Config& config, Backend& backend,
                                              const std::filesystem::path& checkpoint) {
  auto model = std::make_unique<nn::Decoder>(backend, config.model(*config.task()),
                                             config.training().seed, nn::Storage{.initial = false});
  set_amounts(*model, {}, 0);
  begin_with(checkpoint, *model);
  return model;
}

std::vector<HeadScore> softmax_heads(const nn::Decoder& model, std::span<const HeadScore> ranking) {
  std::vector<HeadScore> chosen;
  for (const HeadScore& head : ranking) {
    if (find(model, head).mixer) chosen.push_back(head);
  }
  return chosen;
}

void reinforce(const nn::Decoder& model, std::span<const HeadScore> ranking, std::int64_t count,
               double amount) {
  LONGHAND_CHECK(count >= 0 && count <= std::ssize(ranking), "reinforcement: expected at most ",
                 ranking.size(), " heads, the number of softmax heads of the model, got ", count);
  set_amounts(model, ranking.first(static_cast<std::size_t>(count)), amount);
}

std::vector<Tried> search(const Config& run, const std::filesystem::path& checkpoint,
                          Backend& backend, std::span<const HeadScore> ranking,
                          const ReinforcementGrid& grid, const tasks::Task& task,
                          const EvaluationOptions& options) {
  std::vector<Tried> all;
  const double sign = tasks::lower_is_better(task.main_metric()) ? -1 : 1;
  for (const double threshold : grid.thresholds) {
    const auto model =
        reinforced_model(reinforced(run, run.kind().name, threshold), backend, checkpoint);
    for (const std::int64_t heads : grid.heads) {
      for (const double amount : grid.amounts) {
        reinforce(*model, ranking, heads, amount);
        const tasks::Tally tally = evaluate(*model, task, options);
        all.push_back({.setting = {heads, amount, threshold},
                       .score = tally.at(task.main_metric()).mean(),
                       .loss = evaluate_loss(*model, task, options)});
      }
    }
  }
  std::ranges::stable_sort(all, [&](const Tried& a, const Tried& b) {
    return a.score != b.score ? sign * a.score > sign * b.score : a.loss < b.loss;
  });
  return all;
}

}  // namespace longhand::app
