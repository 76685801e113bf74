#include "apps/run/memory.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "apps/machine.h"
#include "apps/run/batches.h"
#include "apps/run/learning.h"

namespace longhand::app {
namespace {

constexpr std::int64_t looked_at = 32;  // number of sequences whose lengths are examined

}  // namespace

std::string size_in_words(double bytes) {
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  bytes /= 1024;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, bytes < 10 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
  return buffer;
}

nn::MemoryEstimate memory_for(const Config& config, const tasks::Task& task, std::int64_t ranks) {
  const TrainingSettings settings = config.training();
  const BatchPlan plan = settings.batch_plan();
  nn::DecoderConfig model = config.model(task);
  model.deviation = 0;  // random initial values are not needed
  const auto made = [&](Backend& backend) {
    auto decoder = std::make_unique<nn::Decoder>(backend, model, 0, config.storage());
    decoder->parameters().allocate_deferred(*gguf_type("q8_0"));
    set_up_training(config, *decoder);
    return decoder;
  };
  BatchPlan few = plan;
  few.sequences = std::min(plan.sequences, looked_at);
  few.tokens = std::min(plan.tokens, looked_at * task.longest());
  const std::shared_ptr<const tasks::Task> borrowed(std::shared_ptr<const tasks::Task>(), &task);
  const nn::Batch batch = training_batches(borrowed, settings.seed, few)(1, 0);
  const double times =
      plan.tokens ? static_cast<double>(plan.tokens) / static_cast<double>(std::ssize(batch.tokens))
                  : static_cast<double>(plan.sequences) / static_cast<double>(few.sequences);
  const nn::StepSpread spread{.ranks = ranks,
                              .parts = settings.parts,
                              .accumulation = settings.accumulation,
                              .sharing = settings.shard,
                              .keeps_panels = config.compute().backend == "cpu"};
  const auto optimizer = [&](const nn::Model& decoder, nn::Communicator* shared) {
    const ChosenOptimizer chosen =
        optimizer_of(settings, dynamic_cast<const nn::Decoder&>(decoder));
    return nn::make_optimizer(decoder.parameters(), chosen.options, chosen.groups, shared);
  };
  return nn::estimate_training(made, config.compute().options, batch, times, optimizer, spread);
}

std::string require_memory(const Config& config, const tasks::Task& task, std::int64_t ranks) {
  const nn::MemoryEstimate need = memory_for(config, task, ranks);
  const BatchPlan plan = config.training().batch_plan();
  const std::string line = text(
      "about ", size_in_words(need.total()), " of memory",
      ranks > 1 ? text(" on each of ", ranks, " ranks") : "", ": parameters ",
      size_in_words(need.parameters), ", gradients ", size_in_words(need.gradients), ", moments ",
      size_in_words(need.moments),
      need.panels > 0 ? ", packed weights " + size_in_words(need.panels) : "", ", activations ",
      size_in_words(need.activations), " for ", plan.tokens ? plan.tokens : plan.sequences,
      plan.tokens ? " tokens" : " sequences", " at once");
  if (config.compute().backend == "cuda") return "needs " + line;
  const MachineMemory machine = machine_memory();
  const std::string there = text("; this machine has ", size_in_words(machine.total), ", ",
                                 size_in_words(machine.available), " of it free");
  LONGHAND_CHECK(need.total() <= machine.total, "training needs ", line, there,
                 "; to save memory, use a smaller --batch, more --accumulation, --recompute "
                 "1, --moments bf16, or --lora with --weights bf16");
  return "needs " + line + there;
}

}  // namespace longhand::app
