#include <iostream>
#include <random>

#include "apps/compute.h"
#include "apps/run/settings.h"
#include "apps/run/verification.h"
#include "core/quote.h"

namespace longhand::app::verify_command {
namespace {

std::pair<std::int64_t, std::int64_t> range_from(const std::string& words) {
  const std::size_t dots = words.find("..");
  const auto step = [&](std::string_view word) {
    return parse_integer("--steps", word, 1, longest_training);
  };
  if (dots == std::string::npos) return {step(words), step(words)};
  const std::pair range{step(words.substr(0, dots)), step(words.substr(dots + 2))};
  if (range.first > range.second) {
    wrong_usage("--steps: expected A..B with A <= B, got ", quote(words));
  }
  return range;
}

StepsToVerify steps_from(const Arguments& arguments) {
  StepsToVerify steps{.all = arguments.flag("all")};
  if (arguments.given("steps")) steps.range = range_from(arguments.word("steps"));
  if (arguments.given("sample")) {
    steps.sample = arguments.integer("sample", 1, longest_training);
    steps.seed = arguments.given("seed") ? seed_from(arguments) : std::random_device()();
  } else if (arguments.given("seed")) {
    wrong_usage("--seed needs --sample");
  }
  if (int{steps.all} + int{steps.range.has_value()} + int{steps.sample > 0} > 1) {
    wrong_usage("expected only one of --all, --steps and --sample");
  }
  return steps;
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const std::string& run = arguments.plain()[0];
  const StepsToVerify steps = steps_from(arguments);
  std::optional<std::string> against;
  if (arguments.given("against")) against = arguments.word("against");
  std::optional<int> threads;
  if (arguments.given("threads")) {
    threads = static_cast<int>(arguments.integer("threads", 0, 1024));
  }
  const Verified verified = verify(run, steps, against, threads);
  LONGHAND_CHECK(verified.unchecked.empty(), run,
                 ": these parts could not be checked: ", verified.unchecked,
                 "; these parts are valid: ", verified.holds);
  std::cout << printable(text(run, ": valid: ", verified.holds))
            << "\nhash of the last line: " << verified.hash << '\n';
}

const Register command{
    {.name = "verify",
     .summary = "checks a run against its transcript, and can recompute its steps",
     .usage = {"RUN [--all | --steps A..B | --sample N [--seed S]] [--against HASH]"},
     .options = {{"all", "", "recompute all steps, from step 0"},
                 {"steps", "A..B",
                  "recompute steps A to B, from the last checkpoint before step A"},
                 {"sample", "N",
                  "recompute N random stretches; a stretch is the steps from one checkpoint to the "
                  "next"},
                 {"seed", "N", "seed for the choice of stretches; default: random"},
                 {"against", "HASH", "expected hash of the transcript's last line"},
                 {"threads", "N", text(threads_help, "; default: the run's")}},
     .examples = {"verify runs/flip-flop-1 --all", "verify runs/flip-flop-1 --sample 3"},
     .notes = "`longhand train --transcript` writes the transcript. It contains the settings,\n"
              "the loss and a hash of the data of each step, and hashes of the parameters after\n"
              "some steps. By default, `verify` compares settings, data, metrics and checkpoints\n"
              "with the transcript, and recomputes no step.\n"
              "The exit status is 0 only if all checks succeed (docs/guide/verify.md).",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::verify_command
