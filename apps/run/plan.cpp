#include "apps/run/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/run/memory.h"
#include "core/accounting_backend.h"
#include "nn/models/work.h"

namespace longhand::app {
namespace {

namespace fs = std::filesystem;

/// Number of operations of one training step on a batch.
double operations_of(const nn::Decoder& model, const nn::Batch& batch) {
  double pairs = 0;
  for (const std::int32_t n : batch.lengths) pairs += 0.5 * n * (n + 1.0);
  return nn::work_of(model, static_cast<double>(std::ssize(batch.tokens)), pairs).operations;
}

double checkpoint_bytes(const nn::Decoder& model, DType moments) {
  double bytes = 0;
  for (const nn::Parameter& p : model.parameters().all()) {
    bytes += static_cast<double>(p.bytes());
    if (!p.frozen()) bytes += 2.0 * static_cast<double>(p.learning() * size_of(moments));
  }
  return bytes;
}

/// Free bytes on the disk on which `folder` is or would be created. 0 if unknown.
double free_bytes(fs::path folder) {
  std::error_code error;
  folder = fs::absolute(folder, error);
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, error);
  return error ? 0 : static_cast<double>(space.available);
}

}  // namespace

std::string time_in_words(double seconds) {
  struct Unit {
    const char* name;
    double seconds;
  };
  constexpr Unit units[] = {{"days", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
  const Unit* unit = units;
  while (unit->seconds > 1 && seconds < 2 * unit->seconds) ++unit;
  const double amount = seconds / unit->seconds;
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, amount < 10 && unit->seconds > 60 ? "%.1f %s" : "%.0f %s",
                unit->seconds == 1 ? std::ceil(amount) : amount, unit->name);
  return buffer;
}

TrainingWork training_work(const Config& config) {
  const std::shared_ptr<const tasks::Task> task = config.learned();
  const auto nothing = make_accounting_backend();
  nn::DecoderConfig shape = config.model(*task);
  shape.deviation = 0;  // random initial values are not needed
  const nn::Decoder model(*nothing, shape, 0, config.storage());
  const nn::BatchSource source = config.batches(task);
  const TrainingSettings settings = config.training();
  TrainingWork all{.parameters = model.parameters().count(), .steps = settings.schedule.steps};
  for (std::int64_t place = 0; place < settings.batches(); ++place) {
    all.operations += operations_of(model, source(1, place));
  }
  all.operations *= static_cast<double>(all.steps);
  return all;
}

std::string plan_line(const Config& config, const nn::Decoder& model, const nn::Batch& batch,
                      std::int64_t done, double peak, const fs::path& folder) {
  const TrainingSettings settings = config.training();
  const std::int64_t steps = settings.schedule.steps;
  const double batches = static_cast<double>(settings.batches());
  const double tokens = static_cast<double>(std::ssize(batch.tokens));
  std::string line =
      text(done == 0 ? "" : text("continues after step ", done, "; "), steps, " steps, about ",
           std::llround(batches * static_cast<double>(std::ssize(batch.lengths))),
           " sequences and ", std::llround(batches * tokens), " tokens each");
  const auto left = static_cast<double>(std::max<std::int64_t>(0, steps - done));
  if (peak > 0) {
    const double work = batches * operations_of(model, batch);
    const double seconds = left * work / peak;
    if (seconds >= 1) {
      line += text("; at least ", time_in_words(seconds), " at this machine's peak");
    }
  }
  // The disk contains at most the `keep` latest checkpoints, the best one, and the one that is
  // being written.
  const auto kept = static_cast<double>(settings.keep + 2);
  const bool several = settings.checkpoint_every > 0 || settings.checkpoint_minutes > 0 ||
                       settings.evaluate_every > 0 || settings.evaluate_minutes > 0;
  const double each = checkpoint_bytes(
      model, settings.adam.short_moments ? DType::bf16 : model.parameters().type());
  line += text("; checkpoints of ", size_in_words(each), ", ",
               size_in_words(several ? kept * each : each), " at most");
  if (const double room = free_bytes(folder); room > 0) {
    line += text(", ", size_in_words(room), " of disk free");
  }
  return line;
}

}  // namespace longhand::app
