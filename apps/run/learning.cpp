#include "apps/run/learning.h"

#include <algorithm>

#include "apps/run/head_columns.h"
#include "nn/training/checkpoint.h"
#include "nn/training/parts.h"

namespace longhand::app {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

/// Replaces the numbers in a parameter's name by *: blocks.7.norm1.weight becomes
/// blocks.*.norm1.weight.
std::string without_numbers(std::string_view name) {
  std::string all;
  while (true) {
    const std::size_t end = std::min(name.find('.'), name.size());
    const std::string_view part = name.substr(0, end);
    all += is_number(part) ? "*" : part;
    if (end == name.size()) return all;
    all += '.';
    name.remove_prefix(end + 1);
  }
}

/// The parameters that LoRA and mixers add to a model. They are trained instead of the model's own
/// parameters.
std::vector<nn::Parameter> added_to(const nn::Decoder& model) {
  std::vector<nn::Parameter> added;
  for (const nn::Decoder::Adapter& adapter : model.adapters()) {
    added.insert(added.end(), {adapter.lora.a, adapter.lora.b});
  }
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    for (const nn::AnyMixer& mixer : model.block(layer).mixing.mixers()) {
      const std::vector<nn::Parameter> own = mixer->added();
      added.insert(added.end(), own.begin(), own.end());
    }
  }
  return added;
}

}  // namespace

ChosenOptimizer optimizer_of(const TrainingSettings& settings, const nn::Decoder& model) {
  if (!settings.by_muon) return {settings.adam};
  nn::MuonOptions muon = settings.muon;
  muon.adam = settings.adam;
  nn::ParameterGroup outer{.parameters = {}, .adam = true};
  const auto add = [&](const nn::Parameter& parameter) {
    // An output layer may be tied: its weight is then that of the embedding, which is already
    // listed.
    const bool known = std::ranges::count(outer.parameters, parameter) > 0;
    if (parameter && !known) outer.parameters.push_back(parameter);
  };
  add(model.embedding().weight);
  add(model.positions().weight);
  for (std::int64_t head = 0; head < model.outputs(); ++head) add(model.output(head).weight);
  return {muon, {outer}};
}

nn::TrainerOptions trainer_options(const TrainingSettings& settings, const nn::Decoder& model) {
  ChosenOptimizer optimizer = optimizer_of(settings, model);
  return {.steps = settings.schedule.steps,
          .parts = settings.parts,
          .accumulation = settings.accumulation,
          .sharing = settings.shard,
          .schedule = settings.schedule,
          .optimizer = std::move(optimizer.options),
          .groups = std::move(optimizer.groups)};
}

void set_up_training(const Config& config, nn::Decoder& model) {
  LONGHAND_CHECK(!model.wants_reference(),
                 "model.reinforce: reinforced heads have no gradient and cannot be trained");
  const TrainingSettings settings = config.training();
  model.recompute = settings.recompute;
  LONGHAND_CHECK(
      settings.weights != TrainedForm::file || (config.trains_few() && settings.columns == "none"),
      "training.weights: expected f32, because training.train or training.columns "
      "selects matrices, got file; --lora trains matrices that are added to them");
  if (settings.columns != "none") return train_head_columns(model, settings.columns);
  const std::string& parts = settings.train;
  if (parts == "all") return;
  if (parts == "auto") {
    const std::vector<nn::Parameter> added = added_to(model);
    if (!added.empty()) nn::train_only(model.parameters(), added);
    return;
  }
  const std::vector<nn::Parameter> learning = nn::find_parts(model.parameters(), parts);
  for (const nn::Parameter& p : learning) {
    LONGHAND_CHECK(p.var() && p.value().dtype() == model.parameters().type(),
                   "training.weights: expected f32, because training.train selects the parameter ",
                   p.name(), ", which cannot be trained in ",
                   settings.weights == TrainedForm::file ? "blocks" : "bf16");
  }
  nn::train_only(model.parameters(), learning);
}

void begin_with(const std::filesystem::path& checkpoint, const nn::Decoder& model) {
  nn::load_values(checkpoint, model.parameters(), added_to(model));
}

std::string learning_line(const nn::Parameters& parameters) {
  std::vector<std::string> names;
  std::int64_t tensors = 0, numbers = 0;
  for (const nn::Parameter& p : parameters.all()) {
    if (p.frozen()) continue;
    ++tensors;
    numbers += p.learning();
    const std::string name = without_numbers(p.name());
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  }
  if (numbers == parameters.count()) return {};
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return text("trains ", tensors, " of ", parameters.all().size(), " tensors, ", numbers, " of ",
              parameters.count(), " numbers: ", all);
}

}  // namespace longhand::app
