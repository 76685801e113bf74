#include "apps/run/training.h"

#include <algorithm>

#include "apps/run/batches.h"
#include "apps/run/evaluation.h"
#include "apps/run/peak.h"
#include "apps/run/progress.h"
#include "apps/run/run_report.h"
#include "core/atomic_file.h"
#include "nn/models/work.h"

namespace longhand::app {

TrainingManner manner_from(const Arguments& arguments) {
  TrainingManner manner{.quiet = arguments.flag("quiet")};
  if (arguments.given("max-minutes")) {
    const std::chrono::minutes minutes(arguments.integer("max-minutes", 0, 1'000'000));
    manner.until = std::chrono::steady_clock::now() + minutes;
  }
  if (arguments.given("threads")) {
    manner.threads = static_cast<int>(arguments.integer("threads", 0, 1024));
  }
  return manner;
}

std::vector<Option> manner_options() {
  return {{"max-minutes", "N", "stop after that time, with a checkpoint to go on from"},
          {"quiet", "", "no progress"}};
}

TrainingResult train(RunFolder& folder, const TrainingManner& manner) {
  const Config& config = folder.config();
  BackendOptions computing = config.backend_options();
  computing.threads = manner.threads.value_or(computing.threads);
  const auto backend = make_backend(config.text("compute.backend"), computing);
  const std::shared_ptr<const tasks::Task> task = config.task();
  std::vector<std::unique_ptr<tasks::Task>> tests;  // beside the task's distributions
  for (const tasks::Distribution& d : config.kind().distributions) {
    tests.push_back(config.task(d.name));
  }
  nn::Decoder model(*backend, config.model(*task), config.seed());

  const std::int64_t steps = config.integer("training.steps", 0, std::int64_t{1} << 40);
  const std::int64_t parts = config.integer("training.accumulation", 1, 1 << 16);
  const std::int64_t numbers_every = std::max<std::int64_t>(1, steps / 200);
  nn::TrainerOptions options{
      .steps = steps,
      .accumulation = parts,
      .schedule = config.schedule(),
      .adam = config.adam(),
      .evaluate_every = config.integer("training.evaluate_every", 0, std::int64_t{1} << 40),
      .checkpoint_every = config.integer("training.checkpoint_every", 0, std::int64_t{1} << 40),
      .checkpoints = folder.checkpoints(),
      .keep = static_cast<int>(config.integer("training.keep", 1, 1000)),
      .most_file_bytes = config.most_file_bytes(),
      .look_every = model.learned_numbers().empty() ? 0 : numbers_every};
  const EvaluationOptions scoring{
      .samples = config.integer("training.evaluate_samples", 0, 1 << 24), .seed = config.seed()};

  Progress progress(steps, manner.quiet, manner.quiet ? 0 : measure_peak(*backend));
  Json scores = Json::object();
  nn::TrainerHooks hooks;
  hooks.report = [&](const nn::StepReport& r) {
    Json line{{"step", r.step},
              {"loss", r.loss},
              {"accuracy", r.accuracy ? Json(*r.accuracy) : Json()},
              {"rate", r.rate},
              {"gradient_norm", r.gradient_norm},
              {"tokens", r.tokens},
              {"seconds", r.seconds},
              {"waited", r.waited},
              {"peak_bytes", r.memory.peak}};
    if (task->heads() > 1)
      line["head"] = task->head_name(static_cast<int>((r.step - 1) % task->heads()));
    if (r.step % numbers_every == 0 || r.step == steps) {
      for (const auto& [name, value] : model.learned_numbers()) line[name] = value;
    }
    folder.log(line);
    progress.show(r, nn::work_of(model, static_cast<double>(r.tokens), r.pairs).operations);
  };
  hooks.evaluate = [&](std::int64_t step) -> std::optional<double> {
    if (scoring.samples == 0) return std::nullopt;
    Json line{{"step", step}};
    double score = 0;
    Json intervals = Json::object();
    for (std::size_t i = 0; i < tests.size(); ++i) {
      const tasks::Distribution& d = config.kind().distributions[i];
      const tasks::Tally tally = evaluate(model, *tests[i], scoring);
      for (const tasks::Metric& metric : tally.metrics()) {
        line[d.name + "/" + metric.name] = metric.mean();
        if (metric.is_share) {
          const auto interval = tasks::wilson(metric.sum, static_cast<double>(metric.count));
          intervals[d.name + "/" + metric.name] = {interval.low, interval.high};
        }
        progress.say("step " + std::to_string(step) + "  " + d.title + "  " + metric.name + " " +
                     text_of(metric));
      }
      score += tally.at(tests[i]->main_metric()).mean();
    }
    line["intervals"] = intervals;
    folder.log(line);
    scores = line;
    return score;
  };
  const nn::StopSignals signals;
  hooks.stop = [&] { return nn::StopSignals::raised() || manner.is_over(); };

  nn::Trainer trainer(model, training_batches(task, config.seed(), config.batch_plan()), options,
                      hooks);
  trainer.resume_latest();
  folder.open_logs(trainer.step());
  progress.say("# " + folder.path().string() + ", " + std::to_string(model.parameters().count()) +
               " parameters\n" + config.ini());
  const nn::Outcome outcome = trainer.run();
  if (scores.empty()) {  // it was done already
    for (const Json& line : folder.metrics()) {
      if (line.contains("intervals")) scores = line;
    }
  }
  write_atomically(folder.path() / "report.html", run_report(folder));
  if (outcome == nn::Outcome::stopped) {
    progress.say("stopped after step " + std::to_string(trainer.step()) +
                 "; `longhand train --resume " + folder.path().string() + "` goes on");
  }
  return {folder.path(), trainer.step(), outcome == nn::Outcome::finished, scores};
}

}  // namespace longhand::app
