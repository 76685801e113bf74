#include "apps/run/step_time.h"

#include <chrono>

#include "apps/run/learning.h"
#include "nn/training/trainer.h"

namespace longhand::app {

double seconds_per_step(const Config& config, double seconds) {
  using Clock = std::chrono::steady_clock;
  const std::shared_ptr<Backend> backend = config.compute().make();
  const std::shared_ptr<const tasks::Task> task = config.learned();
  const TrainingSettings settings = config.training();
  nn::Decoder model(*backend, config.model(*task), settings.seed, config.storage());
  set_up_training(config, model);

  constexpr std::int64_t fewest = 3, most = 1000;
  nn::TrainerOptions options = trainer_options(settings, model);
  options.steps = options.schedule.steps = most + 1;
  std::int64_t counted = -1;  // the first step is not counted
  Clock::time_point start, last;
  nn::TrainerHooks hooks;
  hooks.report = [&](const nn::StepReport&) {
    last = Clock::now();
    if (++counted == 0) start = last;
  };
  hooks.stop = [&] {
    return counted >= fewest &&
           std::chrono::duration<double>(Clock::now() - start).count() >= seconds;
  };
  nn::Trainer(model, config.batches(task), options, hooks).run();
  return std::chrono::duration<double>(last - start).count() / static_cast<double>(counted);
}

}  // namespace longhand::app
