#include "apps/run/training.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>

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
#include "apps/run/transcript.h"
#include "apps/terminal.h"
#include "core/crc32c.h"
#include "core/npy.h"
#include "nn/models/work.h"
#include "nn/ranks/nccl.h"
#include "nn/training/interruption.h"
#include "nn/training/stop_signals.h"

namespace longhand::app {

RunControl run_control(const Arguments& arguments) {
  RunControl control{.quiet = arguments.flag("quiet"),
                     .show_config = arguments.flag("show-config")};
  if (arguments.given("max-minutes")) {
    const std::chrono::milliseconds time(
        std::llround(60'000 * arguments.number("max-minutes", 0, 1e6)));
    control.until = std::chrono::steady_clock::now() + time;
  }
  if (arguments.given("threads")) {
    control.threads = static_cast<int>(arguments.integer("threads", 0, 1024));
  }
  return control;
}

std::vector<CliFlag> run_control_options() {
  return {{"max-minutes", "N", "stop after N minutes and write a checkpoint to resume from"},
          {"quiet", "", "print no progress"},
          rarely({"show-config", "", "print all settings, including those with default values"})};
}

namespace {

/// Resumes from the given checkpoint, or from the latest one. If the latest checkpoint is damaged,
/// the Error names an undamaged one.
void resume(nn::Trainer& trainer, const RunFolder& folder, const RunControl& control) {
  nn::CheckpointStore store(folder.checkpoints(), 1);
  if (control.from_step) {
    LONGHAND_CHECK(std::ranges::count(store.steps(), *control.from_step), folder.path().string(),
                   ": the run has no checkpoint of step ", *control.from_step);
    trainer.resume(store.path(*control.from_step));
    return;
  }
  try {
    trainer.resume_latest();
  } catch (const Error& error) {
    const auto sound = store.last_sound_before(store.latest().value_or(0));
    if (!sound) fail(error.what(), "; no earlier checkpoint is undamaged");
    fail(error.what(), "; the last undamaged checkpoint is from step ", *sound,
         ": resume from this checkpoint with --from-step ", *sound);
  }
}

/// Wraps the lines that begin with '#' so that they fit the terminal to which they are printed.
std::string wrapped_comments(const std::string& lines) {
  const std::size_t columns = table_columns(STDERR_FILENO);
  if (columns == 0) return lines;
  std::istringstream in(lines);
  std::ostringstream out;
  for (std::string line; std::getline(in, line);) {
    write_wrapped(out, line, 0, 4, line.starts_with("# ") ? columns : line.size());
  }
  std::string all = out.str();
  if (!lines.ends_with('\n')) all.pop_back();
  return all;
}

/// The settings that differ from the defaults of the task, in one line.
std::string changes_line(const Config& config) {
  const Config defaults(config.kind().name);
  std::string line = "# task.name = " + config.kind().name;
  for (const auto& [key, value] : config.settings()) {
    if (!same_setting(config, defaults, key)) line += ", " + key + " = " + value;
  }
  return line + "; --show-config prints all settings";
}

/// Describes how the learning rate continues in a run whose number of steps was changed after
/// `step` steps.
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

/// A line that warns of a warm-up that is longer than the run. Empty if the warm-up is not longer.
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
    std::vector<Tensor> stored;
    for (const BlockRows& part : p.blocks().parts) stored.push_back(part.bytes);
    if (stored.empty()) stored.push_back(p.value());
    for (const Tensor& values : stored) {
      bytes.resize(values.bytes());
      parameters.backend().download(bytes.data(), values.address(), bytes.size());
      sum = crc32c(bytes, sum);
    }
  }
  return std::to_string(sum);
}

/// Reads the data of a run. Throws an Error, before any file is written, if the data have changed
/// since the run began, or if the ranks have different settings or data.
std::vector<RunData> checked_data(const RunFolder& folder, nn::Communicator& ranks) {
  std::vector<RunData> data;
  ranks.together([&] {
    data = data_of(folder.config());
    require_same_data(folder.path(), data);
  });
  RankFacts facts = program_facts(folder.config().compute().options.math);
  facts.emplace_back("run", folder.path().string());
  facts.emplace_back("start", folder.start() ? folder.start()->string() : "none");
  for (const auto& [key, value] : folder.config().settings()) {
    if (key != "compute.threads") facts.emplace_back(key, value);
  }
  for (const RunData& d : data) facts.emplace_back(d.path.string(), d.content());
  require_same(ranks, facts);
  return data;
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

/// The numbers of an evaluation, without its sample texts.
Json without_samples(const Json& evaluation) {
  Json figures = Json::object();
  for (const auto& [name, value] : evaluation.members()) {
    if (name != "samples") figures[name] = value;
  }
  return figures;
}

/// A training: all objects that it consists of, created from its configuration, and what it has
/// reported so far.
class Training {
 public:
  Training(RunFolder& folder, const RunControl& control, int threads)
      : folder_(folder),
        config_(folder.config()),
        settings_(config_.training()),
        control_(control),
        ranks_(*control.ranks),
        backend_(made_backend(config_, threads)),
        task_(config_.task()),
        learned_(config_.learned()),
        tests_(config_, ranks_),
        memory_(checked_memory()),
        model_(*backend_, config_.model(*task_), settings_.seed, config_.storage()) {
    if (tests_.wanted() && TextSamples::wanted(config_)) samples_.emplace(config_);
    set_up_training(config_, model_);
    if (folder.start()) begin_with(*folder.start(), model_);
  }

  /// Trains to the last step, or until the training is stopped.
  TrainingResult run(const std::vector<RunData>& data) {
    if (ranks_.size() > 1 && backend_->name() == "cuda") {
      ranks_.reach_devices(nn::connect_nccl(ranks_));
    }
    check_dump();
    const auto is_there = [&](const std::string& name) {
      return std::filesystem::exists(folder_.path() / name);
    };
    const bool resumes = writes_ && is_there("config.ini") && is_there(transcript_file);
    transcribes_ = ranks_.any(resumes || control_.transcript);
    const bool quiet = control_.quiet || !writes_;
    const double peak = quiet ? 0 : measure_peak(*backend_);
    progress_ = Progress(steps_, quiet, peak);
    ranks_.together([&] { trainer_.emplace(model_, batches_, options(), hooks(), ranks_); });
    open(data);
    if (!quiet) progress_.say(wrapped_comments(introduction(peak)));
    if (writes_) {
      for (const std::string& damage : folder_.read_metrics().damage) progress_.say(damage);
    }
    return finish(trainer_->run());
  }

 private:
  static std::shared_ptr<Backend> made_backend(const Config& config, int threads) {
    ComputeSettings compute = config.compute();
    compute.options.threads = threads;
    return compute.make();
  }
  std::string checked_memory() const {
    require_readable(config_.model(*task_), *learned_);
    return require_memory(config_, *learned_, ranks_.size());
  }

  /// Checks the option --dump-step before any file is created.
  void check_dump() const {
    if (!control_.dump_step) return;
    if (*control_.dump_step > steps_) {
      wrong_usage("--dump-step: expected a step from 1 to ", steps_, ", got ", *control_.dump_step);
    }
    LONGHAND_CHECK(ranks_.size() == 1, "--dump-step can only be used on one rank, got ",
                   ranks_.size(), " ranks; a run on one rank computes the same values");
  }

  nn::TrainerOptions options() const {
    nn::TrainerOptions options = trainer_options(settings_, model_);
    options.evaluate_every = settings_.evaluate_every;
    options.evaluate_seconds = 60 * settings_.evaluate_minutes;
    if (control_.scores_there) options.evaluate_at = control_.to_step;
    options.checkpoint_every = settings_.checkpoint_every;
    options.checkpoint_seconds = 60 * settings_.checkpoint_minutes;
    options.checkpoints = {.folder = folder_.checkpoints(),
                           .keep = settings_.keep,
                           .most_file_bytes = settings_.most_file_bytes()};
    options.look_every = model_.learned_numbers().empty() ? 0 : numbers_every_;
    options.traced = control_.dump_step;
    return options;
  }

  nn::TrainerHooks hooks() {
    nn::TrainerHooks hooks;
    if (writes_) hooks.report = [this](const nn::StepReport& r) { report(r); };
    hooks.evaluate = [this](std::int64_t step) { return evaluate(step); };
    hooks.traced = [this](const nn::StepTrace& trace) { dump(trace); };
    if (transcribes_) {
      hooks.hashed = [this](std::int64_t step, const nn::StateHashes& hashes) {
        if (transcript_) transcript_->add(step, hashes);
      };
      hooks.hashes_after = [this](std::int64_t step) {
        return transcript_every_ > 0 && step % transcript_every_ == 0;
      };
    }
    hooks.interrupt = [] { return nn::StopSignals::raised() != 0; };
    hooks.stop = [this] {
      return nn::StopSignals::raised() != 0 || control_.is_over() ||
             (writes_ && !folder_.in_place()) ||
             (control_.to_step && trainer_->step() >= *control_.to_step);
    };
    return hooks;
  }

  /// Logs and shows a step.
  void report(const nn::StepReport& r) {
    if (transcript_) transcript_->add(r);
    Json line = line_of(r);
    if (task_->heads() > 1)
      line["head"] = task_->head_name(static_cast<int>((r.step - 1) % task_->heads()));
    if (r.step % numbers_every_ == 0 || r.step == steps_) {
      for (const auto& [name, value] : model_.learned_numbers()) line[name] = value;
    }
    folder_.log(line);
    if (r.skipped) {
      if (skipped_++ == 0) progress_.say(text("step ", r.step, ": skipped, no target counts"));
      return;
    }
    progress_.show(r, nn::work_of(model_, static_cast<double>(r.tokens), r.pairs).operations);
  }

  std::optional<double> evaluate(std::int64_t step) {
    if (!tests_.wanted()) return std::nullopt;
    Json line = tests_.of(model_, step, [&](const std::string& words) {
      progress_.say(text("step ", step, "  ", words));
    });
    if (!writes_) return std::nullopt;
    scores_ = line;
    line["samples"] =
        samples_ ? samples_->of(model_) : sample_answers(model_, *config_.task(), settings_.seed);
    folder_.log(line);
    return tests_.total(line);
  }

  void dump(const nn::StepTrace& trace) {
    const auto file = control_.dump_out.empty() ? folder_.path() / text("step-", trace.step, ".npz")
                                                : control_.dump_out;
    save_arrays(file, trace.tensors);
    progress_.say(text("step ", trace.step, ": all of it is in ", file.string()));
    dumped_ = true;
  }

  /// Opens the folder and loads its checkpoint. All ranks must then have the same parameters.
  void open(const std::vector<RunData>& data) {
    ranks_.together([&] {
      if (writes_)
        folder_.open(folder_.start() ? &model_.parameters() : nullptr, data, transcribes_);
    });
    ranks_.together([&] { resume(*trainer_, folder_, control_); });
    LONGHAND_CHECK(!control_.dump_step || *control_.dump_step > trainer_->step(),
                   "--dump-step: expected a step after ", trainer_->step(), ", got ",
                   control_.dump_step.value_or(0));
    if (ranks_.size() > 1) {
      require_same(ranks_, {{"step to resume from", std::to_string(trainer_->step())},
                            {"checksum of all parameters", checksum_of(model_.parameters())}});
    }
    ranks_.together([&] {
      if (!writes_) return;
      if (control_.from_step) {
        nn::CheckpointStore(folder_.checkpoints(), 1).set_aside_after(*control_.from_step);
      }
      folder_.open_logs(trainer_->step(), trainer_->evaluated());
      if (transcribes_) open_transcript();
    });
    // All ranks use the interval of rank 0's transcript, because they must compute the hashes of
    // the training state after the same steps.
    const std::array every{static_cast<double>(transcript_ ? transcript_->every() : 0)};
    transcript_every_ =
        static_cast<std::int64_t>(ranks_.gather(std::span<const double>(every)).front());
  }

  /// Begins or continues the transcript.
  void open_transcript() {
    const bool from_seed = nn::CheckpointStore(folder_.checkpoints(), 1).steps().empty();
    const Json header =
        header_line(folder_, *backend_, trainer_->step(), from_seed ? "seed" : "checkpoint",
                    control_.transcript_every.value_or(settings_.checkpoint_every));
    transcript_.emplace(folder_.opened(), trainer_->step(), header);
  }

  /// The lines that are printed before the first step: plan, memory and settings.
  std::string introduction(double peak) const {
    const std::string path = folder_.path().string();
    if (!folder_.start() && is_finished(folder_.path(), config_)) {
      return text(path, ": finished after step ", steps_,
                  "; nothing is left to train. `longhand train --resume ", path,
                  " --steps N` trains it further");
    }
    const std::int64_t step = trainer_->step(), parts = settings_.parts, ranks = ranks_.size();
    const std::string learning = learning_line(model_.parameters());
    return text(
        "# ", path, ", ", model_.parameters().count(), " parameters\n# ",
        plan_line(config_, model_, batches_(1, 0), step, peak, folder_.path()), "\n# ", memory_,
        '\n',
        ranks == 1 ? ""
                   : text("# ", ranks, " ranks, each ", parts / ranks, " of the ", parts,
                          " parts of a step\n"),
        folder_.former_steps() ? extension_line(settings_, *folder_.former_steps(), step) : "",
        warm_up_line(settings_.schedule), learning.empty() ? "" : "# " + learning + "\n",
        control_.show_config ? config_.ini() : changes_line(config_));
  }

  /// Writes the run's report and prints how the training ended.
  TrainingResult finish(nn::Outcome outcome) {
    const bool time_is_over = outcome == nn::Outcome::stopped && control_.is_over();
    if (control_.scores_at_stop && time_is_over && !trainer_->evaluated()) {
      evaluate(trainer_->step());
    }
    if (writes_) {
      folder_.require_in_place();
      // There is no new evaluation, because the last step was evaluated before: read its scores.
      if (scores_.empty()) {
        for (const Json& line : folder_.metrics()) {
          if (line.contains("intervals")) scores_ = without_samples(line);
        }
      }
      folder_.write_report(run_report(folder_));
    }
    if (control_.dump_step && !dumped_) {
      progress_.say(
          text("step ", *control_.dump_step, " was not computed, so nothing is written for it"));
    }
    if (skipped_ > 0)
      progress_.say(text(skipped_, " steps were skipped, because none of their targets is scored"));
    if (transcript_) {
      progress_.say(text("the transcript has ", transcript_->lines(),
                         " lines; hash of the last line: ", transcript_->hash()));
    }
    if (outcome == nn::Outcome::stopped) {
      progress_.say(text("stopped after step ", trainer_->step(), "; `longhand train --resume ",
                         folder_.path().string(), "` continues the run"));
    }
    return {folder_.path(), trainer_->step(), outcome == nn::Outcome::finished, scores_};
  }

  RunFolder& folder_;
  const Config& config_;
  const TrainingSettings settings_;
  const RunControl& control_;
  nn::Communicator& ranks_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<const tasks::Task> task_, learned_;
  TestScores tests_;
  std::optional<TextSamples> samples_;
  std::string memory_;
  nn::Decoder model_;
  const nn::BatchSource batches_ = config_.batches(learned_);

  const std::int64_t steps_ = settings_.schedule.steps;
  /// Number of steps between two logs of the learned numbers, such as ChaCAL's gamma. They are also
  /// logged after the last step.
  const std::int64_t numbers_every_ = std::max<std::int64_t>(1, steps_ / 200);
  const bool writes_ = ranks_.rank() == 0;
  Progress progress_{steps_, true, 0};
  Json scores_ = Json::object();
  std::int64_t skipped_ = 0;
  bool dumped_ = false;
  bool transcribes_ = false;  // true on all ranks if the run has a transcript
  std::int64_t transcript_every_ = 0;
  std::optional<TranscriptWriter> transcript_;
  std::optional<nn::Trainer> trainer_;
};

}  // namespace

TrainingResult train(RunFolder& folder, const RunControl& control) {
  const nn::StopSignals signals;
  nn::Communicator& ranks = *control.ranks;
  try {
    const std::vector<RunData> data = checked_data(folder, ranks);
    const int threads =
        threads_of_rank(ranks, control.threads.value_or(folder.config().compute().options.threads));
    std::optional<Training> training;
    ranks.together([&] { training.emplace(folder, control, threads); });
    return training->run(data);
  } catch (const nn::Interrupted&) {  // the training was stopped while a batch was generated
    return {.folder = folder.path(),
            .step = nn::CheckpointStore(folder.checkpoints(), 1).latest().value_or(0)};
  }
}

}  // namespace longhand::app
