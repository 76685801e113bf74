#include "apps/run/training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "apps/run/batches.h"
#include "apps/run/config_mixers.h"
#include "apps/run/data_files.h"
#include "apps/run/learning.h"
#include "apps/run/memory.h"
#include "apps/run/peak.h"
#include "apps/run/plan.h"
#include "apps/run/progress.h"
#include "apps/run/ranks.h"
#include "apps/run/run_report.h"
#include "apps/run/run_summary.h"
#include "apps/run/sample_answers.h"
#include "apps/run/test_scores.h"
#include "apps/run/text_samples.h"
#include "core/crc32c.h"
#include "core/npy.h"
#include "nn/models/work.h"
#include "nn/ranks/nccl.h"
#include "nn/training/interruption.h"
#include "nn/training/stop_signals.h"

namespace longhand::app {

TrainingManner manner_from(const Arguments& arguments) {
  TrainingManner manner{.quiet = arguments.flag("quiet"),
                        .show_config = arguments.flag("show-config")};
  if (arguments.given("max-minutes")) {
    const std::chrono::minutes minutes(arguments.integer("max-minutes", 0, 1'000'000));
    manner.until = std::chrono::steady_clock::now() + minutes;
  }
  if (arguments.given("threads")) {
    manner.threads = static_cast<int>(arguments.integer("threads", 0, 1024));
  }
  return manner;
}

std::vector<CliFlag> manner_options() {
  return {{"max-minutes", "N", "stop after N minutes with a checkpoint to resume from"},
          {"quiet", "", "do not show progress"},
          rarely({"show-config", "", "print all settings, including those with default values"})};
}

namespace {

/// Resumes from the given checkpoint, or from the latest one. If the latest checkpoint is damaged,
/// the Error names an undamaged one.
void resume(nn::Trainer& trainer, const RunFolder& folder, const TrainingManner& manner) {
  nn::CheckpointStore store(folder.checkpoints(), 1);
  if (manner.from_step) {
    LONGHAND_CHECK(std::ranges::count(store.steps(), *manner.from_step), folder.path().string(),
                   ": holds no checkpoint of step ", *manner.from_step);
    trainer.resume(store.path(*manner.from_step));
    return;
  }
  try {
    trainer.resume_latest();
  } catch (const Error& error) {
    const auto sound = store.last_sound_before(store.latest().value_or(0));
    if (!sound) fail(error.what(), "; no earlier checkpoint is undamaged");
    fail(error.what(), "; the last undamaged checkpoint is that of step ", *sound,
         ": continue from it with --from-step ", *sound);
  }
}

/// All objects that a training consists of, created from its configuration.
struct Training {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<const tasks::Task> task, learned;
  TestScores tests;
  std::optional<TextSamples> samples;
  std::string memory;
  nn::Decoder model;

  Training(const RunFolder& folder, int threads, nn::Communicator& ranks)
      : backend(made_backend(folder.config(), threads)),
        task(folder.config().task()),
        learned(folder.config().learned()),
        tests(folder.config(), ranks),
        memory(checked_memory(folder.config(), ranks.size())),
        model(*backend, folder.config().model(*task), folder.config().training().seed,
              folder.config().storage()) {
    const Config& config = folder.config();
    if (tests.wanted() && TextSamples::wanted(config)) samples.emplace(config);
    set_up_training(config, model);
    if (folder.start()) begin_with(*folder.start(), model);
  }

 private:
  static std::shared_ptr<Backend> made_backend(const Config& config, int threads) {
    ComputeSettings compute = config.compute();
    compute.options.threads = threads;
    return compute.make();
  }
  std::string checked_memory(const Config& config, int ranks) const {
    require_readable(config.model(*task), *learned);
    return require_memory(config, *learned, ranks);
  }
};

/// The settings that differ from the defaults of the task, in one line.
std::string changes_line(const Config& config) {
  const Config defaults(config.kind().name);
  std::string line = "# task.name = " + config.kind().name;
  for (const auto& [key, value] : config.settings()) {
    if (!same_setting(config, defaults, key)) line += ", " + key + " = " + value;
  }
  return line + "; --show-config prints all settings";
}

/// Describes how the rate continues in a run whose number of steps was changed after `step` steps.
std::string extension_line(const TrainingSettings& settings, std::int64_t former,
                           std::int64_t step) {
  const nn::Schedule& schedule = settings.schedule;
  nn::Schedule before = schedule;
  before.steps = former;
  before.warm_up = settings.warm_up.of(former);
  const std::string line = text("# extended from ", former, " to ", schedule.steps, " steps; ");
  if (step == 0 || (before.warm_up == schedule.warm_up && before.at(step) == schedule.at(step))) {
    return line + "the result has the same bits as that of a run that began with this number\n";
  }
  char rates[128];
  std::snprintf(rates, sizeof rates, "%.3g in step %lld and %.3g in step %lld\n", before.at(step),
                static_cast<long long>(step), schedule.at(step + 1),
                static_cast<long long>(step + 1));
  return text(line, "the ", name_of(schedule.curve), " schedule now covers all ", schedule.steps,
              " steps: the rate is ", rates);
}

/// Reports a warm-up that is longer than the run; otherwise empty.
std::string warm_up_line(const nn::Schedule& schedule) {
  if (schedule.steps == 0 || schedule.warm_up <= schedule.steps || schedule.peak == 0) return {};
  return text("# the run ends during the warm-up of ", schedule.warm_up, " steps, at ",
              std::llround(100 * schedule.at(schedule.steps) / schedule.peak),
              "% of the peak rate; --warm-up 10% is a tenth of the steps\n");
}

/// Checksum of the parameter values, which must be equal on all ranks.
std::string checksum_of(const nn::Parameters& parameters) {
  std::uint32_t sum = 0;
  std::vector<std::byte> bytes;
  for (const nn::Parameter& p : parameters.all()) {
    bytes.resize(p.value().bytes());
    parameters.backend().download(bytes.data(), p.value().address(), bytes.size());
    sum = crc32c(bytes, sum);
  }
  return std::to_string(sum);
}

/// Throws an Error, before any file is written, if the ranks have different settings or data.
void require_same_settings(nn::Communicator& ranks, const RunFolder& folder,
                           const std::vector<RunData>& data) {
  RankFacts facts = program_facts();
  facts.emplace_back("run", folder.path().string());
  facts.emplace_back("start", folder.start() ? folder.start()->string() : "none");
  for (const auto& [key, value] : folder.config().settings()) {
    if (key != "compute.threads") facts.emplace_back(key, value);
  }
  for (const RunData& d : data) facts.emplace_back(d.path.string(), d.content());
  require_same(ranks, facts);
}

Json line_of(const nn::StepReport& r) {
  if (r.skipped) return {{"step", r.step}, {"skipped", true}, {"tokens", r.tokens}};
  Json line{{"step", r.step},
            {"loss", r.loss},
            {"accuracy", r.accuracy ? Json(*r.accuracy) : Json()},
            {"rate", r.rate},
            {"gradient_norm", r.gradient_norm},
            {"tokens", r.tokens},
            {"seconds", r.seconds},
            {"waited", r.waited},
            {"peak_bytes", r.memory.peak}};
  if (r.exchange) {
    line["exchange"] = {{"seconds", r.exchange->seconds},
                        {"exposed", r.exchange->exposed},
                        {"bytes", r.exchange->bytes}};
    line["slowest_seconds"] = r.slowest ? Json(r.slowest->seconds) : Json();
  }
  return line;
}

/// Checks the options of a dump before any file is created.
void check_dump(const TrainingManner& manner, std::int64_t steps) {
  if (!manner.dump_step) return;
  if (*manner.dump_step > steps) {
    wrong_usage("--dump-step: expected a step from 1 to ", steps, ", got ", *manner.dump_step);
  }
  LONGHAND_CHECK(manner.ranks->size() == 1,
                 "--dump-step: expected one rank (several ranks compute the same values), got ",
                 manner.ranks->size());
}

/// The figures of an evaluation without its sample texts.
Json without_samples(const Json& evaluation) {
  Json figures = Json::object();
  for (const auto& [name, value] : evaluation.members()) {
    if (name != "samples") figures[name] = value;
  }
  return figures;
}

TrainingResult train_run(RunFolder& folder, const TrainingManner& manner) {
  const Config& config = folder.config();
  nn::Communicator& ranks = *manner.ranks;
  const bool writes = ranks.rank() == 0;
  std::vector<RunData> data;
  ranks.together([&] {
    data = data_of(config);
    require_same_data(folder.path(), data);
  });
  require_same_settings(ranks, folder, data);
  const int threads =
      threads_of_rank(ranks, manner.threads.value_or(config.compute().options.threads));
  std::optional<Training> made;
  ranks.together([&] { made.emplace(folder, threads, ranks); });
  auto& [backend, task, learned, tests, samples, memory, model] = *made;
  if (ranks.size() > 1 && backend->name() == "cuda") ranks.reach_devices(nn::connect_nccl(ranks));

  const TrainingSettings settings = config.training();
  const std::int64_t steps = settings.schedule.steps;
  check_dump(manner, steps);
  const std::int64_t numbers_every = std::max<std::int64_t>(1, steps / 200);
  nn::TrainerOptions options{.steps = steps,
                             .parts = settings.parts,
                             .accumulation = settings.accumulation,
                             .sharing = settings.shard,
                             .schedule = settings.schedule,
                             .optimizer = settings.adam,
                             .evaluate_every = settings.evaluate_every,
                             .evaluate_at = manner.scores_there ? manner.to_step : std::nullopt,
                             .checkpoint_every = settings.checkpoint_every,
                             .checkpoint_seconds = 60 * settings.checkpoint_minutes,
                             .checkpoints = {.folder = folder.checkpoints(),
                                             .keep = settings.keep,
                                             .most_file_bytes = settings.most_file_bytes()},
                             .look_every = model.learned_numbers().empty() ? 0 : numbers_every,
                             .traced = manner.dump_step};

  const bool quiet = manner.quiet || !writes;
  const double peak = quiet ? 0 : measure_peak(*backend);
  Progress progress(steps, quiet, peak);
  Json scores = Json::object();
  std::int64_t skipped = 0;
  nn::TrainerHooks hooks;
  const nn::Trainer* running = nullptr;
  const auto report = [&, &task = task, &model = model](const nn::StepReport& r) {
    Json line = line_of(r);
    if (task->heads() > 1)
      line["head"] = task->head_name(static_cast<int>((r.step - 1) % task->heads()));
    if (r.step % numbers_every == 0 || r.step == steps) {
      for (const auto& [name, value] : model.learned_numbers()) line[name] = value;
    }
    folder.log(line);
    if (r.skipped) {
      if (skipped++ == 0) progress.say(text("step ", r.step, ": skipped, no target counts"));
      return;
    }
    progress.show(r, nn::work_of(model, static_cast<double>(r.tokens), r.pairs).operations);
  };
  if (writes) hooks.report = report;
  hooks.evaluate = [&, &tests = tests, &samples = samples,
                    &model = model](std::int64_t step) -> std::optional<double> {
    if (!tests.wanted()) return std::nullopt;
    Json line{{"step", step}};
    const Json of = tests.of(
        model, [&](const std::string& words) { progress.say(text("step ", step, "  ", words)); });
    if (!writes) return std::nullopt;
    for (const auto& [name, value] : of.members()) line[name] = value;
    scores = line;
    line["samples"] = samples ? samples->of(model)
                              : sample_answers(model, *config.task(), config.training().seed);
    folder.log(line);
    return tests.total(line);
  };
  bool dumped = false;
  hooks.traced = [&](const nn::StepTrace& trace) {
    const auto file = manner.dump_out.empty() ? folder.path() / text("step-", trace.step, ".npz")
                                              : manner.dump_out;
    save_arrays(file, trace.tensors);
    progress.say(text("step ", trace.step, ": all of it is in ", file.string()));
    dumped = true;
  };
  hooks.interrupt = [] { return nn::StopSignals::raised() != 0; };
  hooks.stop = [&] {
    return nn::StopSignals::raised() != 0 || manner.is_over() || (writes && !folder.in_place()) ||
           (manner.to_step && running->step() >= *manner.to_step);
  };

  const nn::BatchSource batches = config.batches(learned);
  std::optional<nn::Trainer> trainer;
  ranks.together([&, &model = model] { trainer.emplace(model, batches, options, hooks, ranks); });
  running = &*trainer;
  ranks.together([&, &model = model] {
    if (writes) folder.open(folder.start() ? &model.parameters() : nullptr, data);
  });
  ranks.together([&] { resume(*trainer, folder, manner); });
  LONGHAND_CHECK(!manner.dump_step || *manner.dump_step > trainer->step(),
                 "--dump-step: expected a step after ", trainer->step(), ", got ",
                 manner.dump_step.value_or(0));
  if (ranks.size() > 1) {
    require_same(ranks, {{"step to resume from", std::to_string(trainer->step())},
                         {"checksum of all parameters", checksum_of(model.parameters())}});
  }
  ranks.together([&] {
    if (!writes) return;
    if (manner.from_step) {
      nn::CheckpointStore(folder.checkpoints(), 1).set_aside_after(*manner.from_step);
    }
    folder.open_logs(trainer->step(), trainer->evaluated());
  });
  const bool nothing_left = !folder.start() && is_finished(folder.path(), config);
  const std::string learning = learning_line(model.parameters());
  const std::string shared =
      ranks.size() > 1 ? text("# ", ranks.size(), " ranks, each ", settings.parts / ranks.size(),
                              " of the ", settings.parts, " parts of a step\n")
                       : "";
  const std::string extended =
      folder.former_steps() ? extension_line(settings, *folder.former_steps(), trainer->step())
                            : "";
  const std::string plan =
      quiet ? "" : plan_line(config, model, batches(1, 0), trainer->step(), peak, folder.path());
  progress.say(nothing_left ? text(folder.path().string(), ": finished after step ", steps,
                                   "; nothing is left to train. `longhand train --resume ",
                                   folder.path().string(), " --steps N` trains it further")
                            : "# " + folder.path().string() + ", " +
                                  std::to_string(model.parameters().count()) + " parameters\n# " +
                                  plan + "\n# " + memory + "\n" + shared + extended +
                                  warm_up_line(settings.schedule) +
                                  (learning.empty() ? "" : "# " + learning + "\n") +
                                  (manner.show_config ? config.ini() : changes_line(config)));
  if (writes) {
    for (const std::string& damage : folder.read_metrics().damage) progress.say(damage);
  }
  const nn::Outcome outcome = trainer->run();
  if (writes) {
    folder.require_in_place();
    if (scores.empty()) {  // nothing to do if the step was already evaluated
      for (const Json& line : folder.metrics()) {
        if (line.contains("intervals")) scores = without_samples(line);
      }
    }
    folder.write_report(run_report(folder));
  }
  if (manner.dump_step && !dumped) {
    progress.say(
        text("step ", *manner.dump_step, " was not computed, so nothing is written for it"));
  }
  if (skipped > 0)
    progress.say(text(skipped, " steps were skipped, because none of their targets is scored"));
  if (outcome == nn::Outcome::stopped) {
    progress.say("stopped after step " + std::to_string(trainer->step()) +
                 "; `longhand train --resume " + folder.path().string() + "` continues the run");
  }
  return {folder.path(), trainer->step(), outcome == nn::Outcome::finished, scores};
}

}  // namespace

TrainingResult train(RunFolder& folder, const TrainingManner& manner) {
  const nn::StopSignals signals;
  try {
    return train_run(folder, manner);
  } catch (const nn::Interrupted&) {  // interrupted while the batch was generated
    return {.folder = folder.path(),
            .step = nn::CheckpointStore(folder.checkpoints(), 1).latest().value_or(0)};
  }
}

}  // namespace longhand::app
