#include <iostream>

#include "apps/compute.h"
#include "apps/run/evaluation.h"
#include "apps/run/run_folder.h"

namespace longhand::app {
namespace {

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  std::map<std::string, std::string> settings;
  for (const char* flag : {"backend", "threads", "math"}) {
    if (arguments.given(flag)) settings[std::string("compute.") + flag] = arguments.word(flag);
  }
  std::optional<std::int64_t> step;
  if (arguments.given("step")) step = arguments.integer("step", 0, std::int64_t{1} << 40);
  const LoadedRun loaded = load_run(arguments.plain()[0], step, settings);
  const EvaluationOptions options{.samples = arguments.integer("samples", 1, 1 << 24),
                                  .seed = seed_from(arguments)};
  std::vector<std::string> wanted =
      arguments.given("on") ? arguments.words("on") : std::vector<std::string>{};
  if (wanted.empty()) {
    for (const tasks::Distribution& d : loaded.config.kind().distributions) {
      wanted.push_back(d.name);
    }
  }
  Report report({{"on", "distribution"},
                 {"metric", "metric"},
                 {"value", "value", "%.4f"},
                 {"low", "95% from", "%.4f"},
                 {"high", "to", "%.4f"},
                 {"count", "of"}});
  report.set("run", arguments.plain()[0]);
  report.set("step", loaded.step);
  report.set("seed", options.seed);
  for (const std::string& name : wanted) {
    const auto task = loaded.config.task(name);
    const tasks::Tally tally = evaluate(*loaded.model, *task, options);
    for (const tasks::Metric& metric : tally.metrics()) {
      Json row{{"on", name}, {"metric", metric.name}, {"value", metric.mean()}, {"low", {}},
               {"high", {}}, {"count", metric.count}};
      if (metric.is_share) {
        const auto interval = tasks::wilson(metric.sum, static_cast<double>(metric.count));
        row["low"] = interval.low;
        row["high"] = interval.high;
      }
      report.add(row);
    }
  }
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "eval",
     .summary = "scores a run on its task's distributions",
     .usage = {"RUN [--on NAME]... [--samples N]"},
     .options =
         join(compute_options(),
              {{"on", "NAME", "a distribution of the task; all of them if not given", {}, true},
               {"samples", "N", "sequences of each", "1000"},
               {"step", "N", "the checkpoint; the best if not given"},
               json_option()}),
     .examples = {"eval runs/flip-flop-1 --samples 1000", "eval runs/flip-flop-1 --on long --json"},
     .notes = "The model sees the sample's own tokens (teacher forcing).",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app
