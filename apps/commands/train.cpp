#include <iostream>

#include "apps/run/training.h"

namespace longhand::app {
namespace {

std::filesystem::path fresh_folder(const Config& config) {
  for (int number = 1;; ++number) {
    const auto path =
        std::filesystem::path("runs") / (config.text("task.name") + "-" + std::to_string(number));
    if (!std::filesystem::exists(path)) return path;
  }
}

RunFolder folder_of(const Arguments& arguments) {
  if (arguments.given("resume")) {
    for (const Option& option : join(config_options(), {{"out", "", ""}, {"config", "", ""}})) {
      if (option.name != "threads" && arguments.given(option.name)) {
        wrong_usage("--", option.name, ": a run goes on with its own settings");
      }
    }
    return RunFolder(arguments.word("resume"));
  }
  const Config config = Config::from(arguments);
  return RunFolder::create(
      arguments.given("out") ? std::filesystem::path(arguments.word("out")) : fresh_folder(config),
      config);
}

void run(const Arguments& arguments) {
  TrainingManner manner = manner_from(arguments);
  if (arguments.given("from-step")) {
    if (!arguments.given("resume")) wrong_usage("--from-step: expected --resume too");
    manner.from_step = arguments.integer("from-step", 0, std::int64_t{1} << 40);
  }
  RunFolder folder = folder_of(arguments);
  const TrainingResult result = train(folder, manner);
  if (arguments.json()) {
    std::cout << Json{{"run", result.folder.string()},
                      {"step", result.step},
                      {"finished", result.finished},
                      {"scores", result.scores}}
              << '\n';
  }
}

const Register command{
    {.name = "train",
     .summary = "trains a model on a task and writes a run folder",
     .usage = {"--task NAME [flags] [--out DIR]", "--config FILE [flags] [--out DIR]",
               "--resume DIR [--from-step N]"},
     .options = join({{"out", "DIR", "the run folder; runs/TASK-N if not given"},
                      {"config", "FILE", "a config.ini whose settings flags may override"},
                      {"resume", "DIR", "go on with a run from its latest checkpoint"},
                      {"from-step", "N", "with --resume: go on from that step's checkpoint"}},
                     join(manner_options(), join(config_options(), {json_option()}))),
     .examples = {"train --task flip-flop --heads softmax:3,fal:1 --layers 2 --steps 300",
                  "train --resume runs/flip-flop-1"},
     .notes = "Ctrl-C and other signals that ask it to end, and the end of --max-minutes, write a\n"
              "checkpoint before they stop the run; stopped by a signal it exits with 128 + its\n"
              "number. A resumed run has the bits of one that was never stopped, with whatever\n"
              "--threads.",
     .run = run}};

}  // namespace
}  // namespace longhand::app
