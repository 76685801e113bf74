#include <iostream>

#include "apps/compute.h"
#include "apps/run/evaluation.h"
#include "apps/run/run_folder.h"
#include "core/quote.h"

namespace longhand::app {
namespace {

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const auto reading = reading_from_name(arguments.word("reading"));
  if (!reading) {
    wrong_usage("--reading: expected forced or decoded, got ", quote(arguments.word("reading")));
  }
  const EvaluationOptions options{.samples = arguments.integer("samples", 1, 1 << 24),
                                  .seed = seed_from(arguments),
                                  .reading = *reading};
  const LoadedRun loaded =
      load_run(arguments.plain()[0], step_from(arguments), compute_flags(arguments));
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
  report.set("reading", arguments.word("reading"));
  std::vector<std::unique_ptr<tasks::Task>> tests;
  for (const std::string& name : wanted) {
    tests.push_back(as_usage("on", [&] { return loaded.config.task(name); }));
  }
  for (std::size_t i = 0; i < tests.size(); ++i) {
    const std::string& name = wanted[i];
    const auto& task = tests[i];
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
         join(run_options(),
              {{"seed", "N", "names the samples", "1"},
               {"on", "NAME", "a distribution of the task; all of them if not given", {}, true},
               {"samples", "N", "sequences of each", "1000"},
               {"reading", "HOW", "forced or decoded", "forced"},
               json_option()}),
     .examples = {"eval runs/flip-flop-1 --samples 1000", "eval runs/flip-flop-1 --on 4x --json",
                  "eval runs/cycle-tracing-1 --reading decoded --samples 100"},
     .notes =
         "forced: the model sees the sample's own tokens (teacher forcing). decoded: where it\n"
         "was asked it goes on from what it said itself.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app
