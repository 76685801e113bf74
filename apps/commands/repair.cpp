#include "apps/run/repair.h"

#include <iostream>

#include "apps/run/evaluation.h"
#include "apps/run/test_scores.h"
#include "apps/run/training.h"
#include "core/quote.h"
#include "nn/training/checkpoint_store.h"

namespace longhand::app {
namespace {

/// The distributions that are scored, by name: those that were asked for, or all.
struct Test {
  std::string name;
  std::unique_ptr<tasks::Task> task;
};
std::vector<Test> tests_of(const Config& config, const std::vector<std::string>& wanted) {
  std::vector<Test> tests;
  for (const std::string& name : wanted) {
    tests.push_back({name, as_usage("on", [&] { return config.task(name); })});
  }
  if (!tests.empty()) return tests;
  for (const tasks::Distribution& d : config.kind().distributions) {
    tests.push_back({d.name, config.task(d.name)});
  }
  return tests;
}

/// A model's metrics on each.
std::vector<tasks::Tally> scores_of(const LoadedRun& run, const std::vector<Test>& tests,
                                    const EvaluationOptions& options) {
  std::vector<tasks::Tally> scores;
  for (const Test& test : tests) {
    const std::string why = unreadable(run.model->config(), *test.task);
    LONGHAND_CHECK(why.empty(), test.name, ": ", why);
    scores.push_back(evaluate(*run.model, *test.task, options));
  }
  return scores;
}

void add_rows(Report& report, const std::string& name, const tasks::Tally& before,
              const tasks::Tally& after) {
  const auto put = [](Json& row, const std::string& when, const tasks::Metric& metric) {
    row[when] = metric.mean();
    if (!metric.is_share) return;
    const auto interval = tasks::wilson(metric.sum, static_cast<double>(metric.count));
    row[when + "_low"] = interval.low;
    row[when + "_high"] = interval.high;
  };
  for (const tasks::Metric& metric : before.metrics()) {
    Json row{{"on", name}, {"metric", metric.name}};
    for (const char* key :
         {"before", "before_low", "before_high", "after", "after_low", "after_high"}) {
      row[key] = Json();
    }
    row["count"] = metric.count;
    put(row, "before", metric);
    put(row, "after", after.at(metric.name));
    report.add(row);
  }
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const std::filesystem::path from = arguments.plain()[0], to = arguments.word("out");
  const auto method = repair_from_name(arguments.word("method"));
  if (!method) {
    wrong_usage("--method: expected ", repair_names(), ", got ", quote(arguments.word("method")));
  }
  const auto reading = reading_from_name(arguments.word("reading"));
  if (!reading) {
    wrong_usage("--reading: expected forced or decoded, got ", quote(arguments.word("reading")));
  }
  const TrainingManner manner = manner_from(arguments);
  LoadOptions loading;
  if (arguments.given("from-step")) {
    loading.step = arguments.integer("from-step", 0, std::int64_t{1} << 40);
  }
  for (const char* flag : {"backend", "threads", "math"}) {
    if (arguments.given(flag)) loading.compute[flag] = arguments.word(flag);
  }

  const RunFolder start(from);
  const std::string task =
      arguments.given("task") ? arguments.word("task") : start.config().text("task.name");
  as_usage("task", [&] { return &tasks::task_kind(task); });
  Config config = repaired(start.config(), *method, task);
  if (*method == Repair::rope_off && arguments.given("steps")) {
    wrong_usage("--steps: rope-off trains nothing");
  }
  config.set_flags(arguments);
  config.check();
  const std::vector<Test> tests = tests_of(config, arguments.words("on"));
  const EvaluationOptions options{.samples = arguments.integer("samples", 1, 1 << 24),
                                  .seed = config.seed(),
                                  .reading = *reading};
  const std::int64_t step = find_step(start, loading.step);
  RunFolder folder =
      RunFolder::create(to, config, nn::CheckpointStore(start.checkpoints(), 1).path(step));

  std::vector<tasks::Tally> before;
  {
    const LoadedRun loaded = load_run(from, loading);
    const std::int64_t theirs = loaded.model->config().vocabulary;
    const std::int64_t ours = tests.front().task->vocabulary().size();
    LONGHAND_CHECK(theirs == ours, "repair: expected a run of the task's vocabulary, ", ours,
                   " tokens, got a model of ", theirs);
    before = scores_of(loaded, tests, options);
  }
  if (!train(folder, manner).finished) {
    if (arguments.json()) std::cout << Json{{"run", to.string()}, {"finished", false}} << '\n';
    return;
  }
  LoadOptions own = loading;
  own.step.reset();
  const std::vector<tasks::Tally> after = scores_of(load_run(to, own), tests, options);

  Report report({{"on", "distribution"},
                 {"metric", "metric"},
                 {"before", "before", "%.4f"},
                 {"before_low", "95% from", "%.4f"},
                 {"before_high", "to", "%.4f"},
                 {"after", "after", "%.4f"},
                 {"after_low", "95% from", "%.4f"},
                 {"after_high", "to", "%.4f"},
                 {"count", "of"}});
  report.set("run", to.string());
  report.set("repairs", from.string());
  report.set("step", step);
  report.set("method", arguments.word("method"));
  report.set("reading", arguments.word("reading"));
  report.set("finished", true);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    add_rows(report, tests[i].name, before[i], after[i]);
  }
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "repair",
     .summary = "changes a run's attention, or trains only that, and writes a repaired run",
     .usage = {"RUN --method NAME --out DIR [--on NAME]... [flags of train]"},
     .options =
         join({{"method", "NAME", repair_names()},
               {"out", "DIR", "the repaired run's folder"},
               {"from-step", "N", "the checkpoint of RUN that is repaired; the best if not given"},
               {"on", "NAME", "a distribution that is scored; all of them if not given", {}, true},
               {"samples", "N", "sequences of each", "1000"},
               {"reading", "HOW", "forced or decoded", "forced"}},
              join(manner_options(), join(config_options(), {json_option()}))),
     .examples =
         {"repair runs/reversal-1 --method columns --steps 500 --rate 1e-2 --out runs/fixed",
          "repair runs/reversal-1 --method columns --columns 0,60..63 --out runs/fixed",
          "repair runs/reversal-1 --method rope-off --out runs/unturned --json",
          "repair runs/addition-1 --method bias-heads --steps 1000 --out runs/biased"},
     .notes =
         "columns: of all the model only these columns of every head's W_Q and W_K learn, the\n"
         "last if --columns does not say others. rope-off: no rotary positions; nothing learns.\n"
         "bias-matrix, bias-heads: a bias added to every score learns, a matrix for each head or\n"
         "the weights of further heads. What learns does so on --train-on, ood if not given; the\n"
         "control of such a repair is the same command on a run that has not learned the task.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app
