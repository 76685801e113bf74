#include <iostream>

#include "apps/run/batches.h"
#include "apps/run/ranks.h"
#include "apps/run/text_budget.h"
#include "apps/run/training.h"
#include "core/quote.h"
#include "nn/ranks/mpi.h"
#include "nn/training/checkpoint_store.h"

namespace longhand::app::train_command {
namespace {

std::filesystem::path fresh_folder(const Config& config) {
  for (int number = 1;; ++number) {
    const auto path =
        std::filesystem::path("runs") / (config.task_title() + "-" + std::to_string(number));
    if (!std::filesystem::exists(path)) return path;
  }
}

std::optional<std::int64_t> from_step(const Arguments& arguments) {
  if (!arguments.given("from-step")) return std::nullopt;
  return arguments.integer("from-step", 0, longest_training);
}

/// The training that the command line requests. The folder of the run is not examined yet.
struct Plan {
  std::filesystem::path path;
  std::optional<Config> config = {};  // empty: resume the existing run
  std::optional<std::filesystem::path> start = {};
  std::optional<std::int64_t> steps = {};  // new number of steps of the existing run
  std::optional<std::chrono::steady_clock::time_point> until = {};  // set by --minutes
};

/// If mpirun or srun started the process and the configuration does not set training.parts, sets
/// training.parts (the number of parts into which a batch is cut) to default_parts().
Config with_parts(Config config) {
  if (nn::ranks_asked_for() && config.is_default("training.parts")) {
    config.set("training.parts", std::to_string(default_parts(config)));
  }
  return config;
}

/// Converts the value of --epochs, if it is given, to a number of steps.
Config with_epochs(Config config, const Arguments& arguments) {
  if (!arguments.given("epochs")) return config;
  if (arguments.given("steps")) wrong_usage("--epochs cannot be combined with --steps");
  const double epochs = arguments.number("epochs", 0, 1e6);
  const std::int64_t steps = as_usage("epochs", [&] {
    return steps_of_epochs(epochs, *config.learned(), config.training().batch_plan());
  });
  config.set("training.steps", std::to_string(steps), "--epochs");
  config.check();
  return config;
}

/// The value of --minutes in seconds. Throws UsageError if another flag contradicts it.
double seconds_of(const Arguments& arguments) {
  for (const char* flag : {"steps", "epochs", "resume", "from", "config", "max-minutes"}) {
    if (!arguments.given(flag)) continue;
    const std::string_view name = flag;
    wrong_usage("--minutes cannot be combined with ", shown_flag(flag),
                name == "steps" || name == "epochs" ? ", because it chooses the number of steps"
                : name == "max-minutes"             ? ", because it also stops the training"
                                                    : ", which determines the settings");
  }
  const double minutes = arguments.number("minutes", 0, 1e6);
  if (minutes == 0) wrong_usage("--minutes: expected a number above 0, got 0");
  return 60 * minutes;
}

/// Chooses the settings of a training on a text that takes --minutes minutes.
Plan plan_for_minutes(const Arguments& arguments, const Config& config,
                      const std::filesystem::path& path) {
  const double seconds = seconds_of(arguments);
  const auto start = std::chrono::steady_clock::now();
  if (config.kind().name != "text") {
    wrong_usage("--minutes: expected the task text, got the task ", config.kind().name);
  }
  if (nn::ranks_asked_for()) wrong_usage("--minutes cannot be used under mpirun");
  (void)RunFolder::create(path, config);  // throws an Error if the folder already holds a run
  // 3% of the time is used to measure the duration of a step.
  const Machine machine = this_machine(config.compute(), 0.03 * seconds);
  TextPlan plan = plan_text_training(config, path, seconds, machine, [&](const std::string& line) {
    if (!arguments.flag("quiet")) std::cerr << "# " << line << '\n';
  });
  using Clock = std::chrono::steady_clock;
  const auto length = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(plan.training_ends));
  return {.path = path, .config = std::move(plan.config), .until = start + length};
}

Plan plan_of(const Arguments& arguments) {
  if (arguments.given("minutes")) (void)seconds_of(arguments);  // checks the other flags first
  if (arguments.given("from") && arguments.given("config")) {
    wrong_usage("--config cannot be combined with --from, which determines the settings");
  }
  if (arguments.given("resume")) {
    const std::vector<CliFlag> others{{"out", "", ""},        {"config", "", ""},
                                      {"from", "", ""},       {"epochs", "", ""},
                                      {"transcript", "", ""}, {"transcript-every", "", ""}};
    for (const CliFlag& option : join(config_options(), others)) {
      if (option.name != "threads" && option.name != "steps" && arguments.given(option.name)) {
        wrong_usage(shown_flag(option.name),
                    ": cannot be combined with --resume, because a run keeps its settings");
      }
    }
    Plan plan{.path = arguments.word("resume")};
    if (arguments.given("steps")) plan.steps = arguments.integer("steps", 1, longest_training);
    return plan;
  }
  const auto path_for = [&](const Config& config) {
    return arguments.given("out") ? std::filesystem::path(arguments.word("out"))
                                  : fresh_folder(config);
  };
  if (arguments.given("from")) {
    const RunFolder other(arguments.word("from"));
    const std::int64_t step = find_step(other, from_step(arguments));
    const Config config =
        with_epochs(with_parts(Config::from_run(other.config(), arguments)), arguments);
    return {path_for(config), config, nn::CheckpointStore(other.checkpoints(), 1).path(step)};
  }
  const Config config = with_epochs(with_parts(Config::from(arguments)), arguments);
  if (arguments.given("minutes")) return plan_for_minutes(arguments, config, path_for(config));
  return {path_for(config), config};
}

/// Opens or creates the folder of the run. With --minutes, also sets the time at which training
/// stops.
RunFolder folder_of(const Arguments& arguments, nn::Communicator& ranks, RunControl& control) {
  Plan plan;
  ranks.together([&] { plan = plan_of(arguments); });
  plan.path = ranks.gather(std::string_view(plan.path.string())).front();
  if (plan.until) {
    control.until = plan.until;
    control.scores_at_stop = true;
  }
  std::optional<RunFolder> folder;
  ranks.together([&] {
    if (plan.config) {
      folder.emplace(RunFolder::create(plan.path, *plan.config, plan.start));
    } else {
      folder.emplace(plan.path);
    }
    if (!plan.steps) return;
    const std::int64_t steps = folder->config().training().schedule.steps;
    if (*plan.steps <= steps) {
      wrong_usage("--steps: expected more than the ", steps, " steps of ", plan.path.string(),
                  ", got ", *plan.steps);
    }
    folder->extend(*plan.steps);
  });
  return std::move(*folder);
}

/// Prints the score on the held-out text and a continuation that the model wrote when it was
/// scored.
void show_result(const RunFolder& folder, const TrainingResult& result) {
  if (const Json* bits = result.scores.find("validation/bits_per_byte")) {
    std::cout << "bits per byte of the held-out text: " << bits->dump() << '\n';
  }
  Json samples;
  folder.read_metrics([&](const Json& line) {
    if (const Json* found = line.find("samples")) samples = *found;
  });
  if (!samples.is_array() || samples.elements().empty()) return;
  const Json& sample = samples.elements().front();
  std::cout << "continuation of " << quote(sample["prompt"].string()) << ":\n"
            << printable_lines(sample["text"].string()) << '\n';
}

void train_on(nn::Communicator& ranks, const Arguments& arguments, RunControl control) {
  control.ranks = &ranks;
  RunFolder folder = folder_of(arguments, ranks, control);
  const TrainingResult result = train(folder, control);
  if (arguments.given("minutes") && !arguments.json()) show_result(folder, result);
  if (arguments.json() && ranks.rank() == 0) {
    std::cout << Json{{"run", result.folder.string()},
                      {"step", result.step},
                      {"finished", result.finished},
                      {"scores", result.scores}}
              << '\n';
  }
}

RunControl train_control(const Arguments& arguments) {
  if (arguments.empty()) {
    wrong_usage(
        "expected --task NAME, --text FILE, --config FILE, --from RUN or --resume DIR; see "
        "`longhand train "
        "--help`");
  }
  RunControl control = run_control(arguments);
  if (arguments.given("from-step") && !arguments.given("resume") && !arguments.given("from")) {
    wrong_usage("--from-step needs --resume or --from");
  }
  if (arguments.given("resume")) control.from_step = from_step(arguments);
  control.transcript = arguments.flag("transcript");
  if (arguments.given("transcript-every")) {
    if (!control.transcript) wrong_usage("--transcript-every needs --transcript");
    control.transcript_every = arguments.integer("transcript-every", 0, longest_training);
  }
  if (arguments.given("dump-step")) {
    control.dump_step = arguments.integer("dump-step", 1, longest_training);
  }
  if (arguments.given("dump-out")) {
    if (!control.dump_step) wrong_usage("--dump-out needs --dump-step");
    control.dump_out = arguments.word("dump-out");
    const std::string form = control.dump_out.extension();
    if (form != ".npz" && form != ".safetensors") {
      wrong_usage("--dump-out: expected a name that ends in .npz or .safetensors, got ",
                  quote(control.dump_out.string()));
    }
  }
  return control;
}

void run(const Arguments& arguments) {
  on_ranks([&](nn::Communicator& ranks) {
    RunControl control;
    ranks.together([&] { control = train_control(arguments); });
    train_on(ranks, arguments, control);
  });
}

const Register command{
    {.name = "train",
     .summary = "trains a model on a task and writes a run folder",
     .usage = {"--task NAME [flags] [--out DIR]", "--text FILE --minutes N [flags] [--out DIR]",
               "--config FILE [flags] [--out DIR]",
               "--from RUN [--from-step N] [flags] [--out DIR]",
               "--resume DIR [--steps N] [--from-step N]"},
     .options = join(
         {{"out", "DIR", "run folder to create; default: runs/TASK-N"},
          rarely({"config", "FILE", "read settings from this config.ini; flags override them"}),
          {"from", "RUN", "start with the model, task and best weights of this run"},
          {"resume", "DIR", "resume this run; --steps N extends it to N steps"},
          {"minutes", "N",
           "for a text: train for N minutes, with a tokenizer and settings that suit this time"},
          rarely(
              {"epochs", "N", "number of epochs, for a text or a training set; replaces --steps"}),
          rarely(
              {"from-step", "N", "with --resume or --from: step of the checkpoint to start from"}),
          rarely({"transcript", "", "write RUN/transcript.jsonl, which `longhand verify` checks"}),
          rarely({"transcript-every", "N",
                  "steps between parameter hashes in the transcript; 0: only at checkpoints; "
                  "default: --checkpoint-every"}),
          rarely({"dump-step", "N",
                  "write the data, activations, gradients and moments of step N to a file"}),
          rarely({"dump-out", "FILE",
                  "file of --dump-step, .npz or .safetensors; default: RUN/step-N.npz"})},
         join(run_control_options(), join(config_options(), {json_option()}))),
     .examples = {"train --text book.txt --minutes 5 --out runs/book",
                  "train --task flip-flop --heads softmax:3,fal:1 --layers 2 --steps 300",
                  "train --from runs/smol --text book.txt --steps 200 --rate 1e-4 --out runs/book"},
     .notes = "Ctrl-C and --max-minutes stop with a checkpoint. `mpirun -np N longhand train ...`\n"
              "uses N processes. All N give the same bits, and so does resuming (docs/scaling.md).",
     .run = run}};

}  // namespace
}  // namespace longhand::app::train_command
