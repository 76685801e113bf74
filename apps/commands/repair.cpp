#include "apps/run/repair.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "apps/html/page.h"
#include "apps/run/evaluation.h"
#include "apps/run/reinforcement.h"
#include "apps/run/sweep.h"
#include "apps/run/test_scores.h"
#include "apps/run/training.h"
#include "core/atomic_file.h"
#include "core/quote.h"
#include "nn/training/checkpoint_store.h"

namespace longhand::app::repair_command {
namespace {

/// The test distributions on which a run is scored before and after its repair. They are named
/// distributions of the task, or the points of a sweep over the task's options.
struct Tests {
  std::vector<SweepAxis> axes;     // axes of a sweep; may be empty
  std::vector<std::string> names;  // names of the distributions or points
  std::vector<SweepPoint> before, after;
};

Tests tests_of(const Config& config, const Arguments& arguments) {
  Tests tests{.axes = axes_from(arguments), .names = {}, .before = {}, .after = {}};
  if (!tests.axes.empty()) {
    tests.before = as_usage("sweep", [&] { return sweep_points(config, tests.axes); });
    for (const SweepPoint& point : tests.before) tests.names.push_back(name_of(point, tests.axes));
  } else {
    tests.names = distributions_from(arguments, config);
    for (const std::string& name : tests.names) {
      tests.before.push_back(
          {.values = {}, .task = as_usage("on", [&] { return config.task(name); })});
    }
  }
  tests.after = tests.before;
  return tests;
}

void score(nn::Decoder& model, const Tests& tests, std::vector<SweepPoint>& points,
           const EvaluationOptions& options) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string why = unreadable(model.config(), *points[i].task);
    LONGHAND_CHECK(why.empty(), tests.names[i], ": ", why);
  }
  sweep(model, points, options);
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

void write_figure(const Tests& tests, const std::string& title, const Config& config,
                  const std::filesystem::path& file) {
  html::Page page(title, "Before and after, with 95% intervals");
  for (const tasks::Metric& metric : tests.before.front().tally.metrics()) {
    html::LineChart chart{.x_label = tests.axes[0].option,
                          .y_label = metric.name,
                          .series = sweep_series("before", tests.before, tests.axes, metric.name)};
    for (html::Series& after : sweep_series("after", tests.after, tests.axes, metric.name)) {
      chart.series.push_back(std::move(after));
    }
    chart.y_low = 0;
    if (metric.is_share) chart.y_high = 1;
    page.add(metric.name, html::figure(line_chart(chart), metric.name));
  }
  page.add("Configuration", html::code(config.ini()));
  write_atomically(file, page.render());
}

/// Parses the value of a flag as a list of numbers, such as "1,2,8..12" or "0.5,1".
template <class Number>
std::vector<Number> list(const Arguments& arguments, const std::string& flag,
                         const std::function<Number(const std::string&)>& number) {
  const SweepAxis axis =
      as_usage(flag, [&] { return parse_axis(flag + "=" + arguments.word(flag)); });
  std::vector<Number> all;
  for (const std::string& value : axis.values) all.push_back(number(value));
  return all;
}

std::vector<double> decimals(const Arguments& arguments, const std::string& flag, double high) {
  return list<double>(arguments, flag, [&](const std::string& value) {
    return parse_number(shown_flag(flag), value, 0, high);
  });
}

ReinforcementGrid grid_of(const Arguments& arguments, std::int64_t heads) {
  ReinforcementGrid grid{.heads = {},
                         .amounts = decimals(arguments, "delta", 1e6),
                         .thresholds = decimals(arguments, "threshold", 1)};
  if (arguments.given("top")) {
    grid.heads = list<std::int64_t>(arguments, "top", [&](const std::string& value) {
      return parse_integer("--top", value, 1, heads);
    });
  } else {
    for (std::int64_t count = 1; count <= heads; count = count < 4 ? count + 1 : 2 * count) {
      grid.heads.push_back(count);
    }
  }
  return grid;
}

/// The run to repair and its checkpoint.
struct Start {
  RunFolder folder;
  LoadOptions loading = {};
  std::int64_t step = 0;
  std::filesystem::path checkpoint = {};
};

Start start_from(const Arguments& arguments) {
  Start start{.folder = RunFolder(arguments.plain()[0])};
  if (arguments.given("from-step")) {
    start.loading.step = arguments.integer("from-step", 0, std::int64_t{1} << 40);
  }
  for (const char* flag : {"backend", "threads", "math"}) {
    if (arguments.given(flag)) start.loading.compute[flag] = arguments.word(flag);
  }
  start.step = find_step(start.folder, start.loading.step);
  start.checkpoint = nn::CheckpointStore(start.folder.checkpoints(), 1).path(start.step);
  return start;
}

/// Carries out the method `reinforce`: ranks the attention heads, tries all settings of the
/// reinforcement, and writes a run with the best setting. `config` is the configuration without
/// reinforcement. Returns the table of tried settings.
Report write_reinforced(const Config& config, const Start& start, nn::Decoder& model,
                        const std::filesystem::path& to, const Arguments& arguments,
                        std::uint64_t seed) {
  const auto ranked_on =
      as_usage("rank-on", [&] { return config.task(arguments.word("rank-on")); });
  const auto searched =
      as_usage("search-on", [&] { return config.task(arguments.word("search-on")); });
  // The seed differs from that of the final scores, so the search for the best setting and the
  // final scores use different samples.
  const EvaluationOptions options{.samples = arguments.integer("search-samples", 1, 1 << 24),
                                  .seed = seed + 1};
  const std::vector<HeadScore> ranking =
      softmax_heads(model, rank_heads(model, *ranked_on, options));
  const ReinforcementGrid grid = grid_of(arguments, std::ssize(ranking));
  const std::vector<Tried> tried =
      search(config, start.checkpoint, model.backend(), ranking, grid, *searched, options);
  const ReinforcementSetting& best = tried.front().setting;

  Config own = reinforced(config, config.kind().name, best.threshold);
  for (const char* key : {"training.evaluate_samples", "training.seed"}) {
    own.set(key, config.text(key));
  }
  const auto made = reinforced_model(own, model.backend(), start.checkpoint);
  reinforce(*made, ranking, best.heads, best.amount);
  RunFolder folder = RunFolder::create(to, own, start.checkpoint);
  folder.open(&made->parameters());
  folder.write_origin("repaired");
  // Logs the test scores of the repaired model, as training does at its end.
  if (const TestScores tests(folder.config()); tests.wanted()) {
    folder.open_logs(0);
    folder.log(tests.of(*made, 0));
  }

  Report report({{"heads", "heads"},
                 {"delta", "delta"},
                 {"threshold", "threshold"},
                 {"score", std::string(searched->main_metric()), "%.4f"},
                 {"loss", "loss", "%.4f"}});
  for (const Tried& one : tried) {
    report.add({{"heads", one.setting.heads},
                {"delta", one.setting.amount},
                {"threshold", one.setting.threshold},
                {"score", one.score},
                {"loss", one.loss}});
  }
  return report;
}

Json array_of(const std::vector<Json>& rows) {
  Json all = Json::array();
  for (const Json& row : rows) all.push_back(row);
  return all;
}

/// The repair method named by --method. Flags that this method does not support are refused.
Repair method_from(const Arguments& arguments) {
  const std::string& name = arguments.word("method");
  const auto method = repair_from_name(name);
  if (!method) wrong_usage("--method: expected ", repair_names(), ", got ", quote(name));
  const bool reinforces = *method == Repair::reinforce;
  if ((reinforces || *method == Repair::rope_off) && arguments.given("steps")) {
    wrong_usage("--steps: the method ", name, " does not train the model");
  }
  for (const char* flag : {"top", "delta", "threshold", "rank-on", "search-on", "search-samples"}) {
    if (!reinforces && arguments.given(flag)) {
      wrong_usage(shown_flag(flag), ": the method ", name, " has no such setting");
    }
  }
  return *method;
}

/// The configuration of the repaired run; for `reinforce`, without reinforced heads.
Config config_from(const Config& run, Repair method, const std::string& task,
                   const Arguments& arguments) {
  as_usage("task", [&] { return tasks::named_task(task); });
  Config config =
      method == Repair::reinforce ? Config::from_run(run, task) : repaired(run, method, task);
  config.set_flags(arguments);
  config.check();
  return config;
}

Report empty_report(const Tests& tests) {
  return Report({{"on", tests.axes.empty() ? "distribution" : "sample"},
                 {"metric", "metric"},
                 {"before", "before", "%.4f"},
                 {"before_low", "95% from", "%.4f"},
                 {"before_high", "to", "%.4f"},
                 {"after", "after", "%.4f"},
                 {"after_low", "95% from", "%.4f"},
                 {"after_high", "to", "%.4f"},
                 {"count", "of"}});
}

void require_vocabulary(const nn::Decoder& model, const tasks::Task& task) {
  const std::int64_t has = model.config().vocabulary, needs = task.vocabulary().size();
  LONGHAND_CHECK(has == needs, "repair: expected a run with the task's vocabulary of ", needs,
                 " tokens, got a run with ", has, " tokens");
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const std::filesystem::path from = arguments.plain()[0], to = arguments.word("out");
  const Repair method = method_from(arguments);
  const bool reinforces = method == Repair::reinforce;
  const Reading reading = reading_from(arguments);
  const RunControl control = run_control(arguments);

  const Start start = start_from(arguments);
  const Config& theirs = start.folder.config();
  const std::string task = arguments.given("task") ? arguments.word("task") : theirs.kind().name;
  const Config config = config_from(theirs, method, task, arguments);
  Tests tests = tests_of(config, arguments);
  const EvaluationOptions options{.samples = arguments.integer("samples", 1, 1 << 24),
                                  .seed = config.training().seed,
                                  .reading = reading};
  // Reports an invalid configuration before anything is computed.
  RunFolder::create(to, config, start.checkpoint);

  Report report = empty_report(tests);
  report.set("run", to.string());
  report.set("repairs", from.string());
  report.set("step", start.step);
  report.set("method", arguments.word("method"));
  report.set("reading", arguments.word("reading"));
  // Table of the settings that the method `reinforce` tried, best first.
  std::optional<Report> tried;
  {
    const LoadedRun loaded = load_run(from, start.loading);
    require_vocabulary(*loaded.model, *tests.before.front().task);
    score(*loaded.model, tests, tests.before, options);
    if (reinforces) {
      tried = write_reinforced(config, start, *loaded.model, to, arguments, options.seed);
      report.set("tried", array_of(tried->rows()));
    }
  }
  if (!reinforces) {
    RunFolder folder = RunFolder::create(to, config, start.checkpoint);
    const bool finished = train(folder, control).finished;
    report.set("finished", finished);
    if (!finished) {
      if (arguments.json()) report.print(std::cout, true);
      return;
    }
  }
  LoadOptions own = start.loading;
  own.step.reset();
  score(*load_run(to, own).model, tests, tests.after, options);
  for (std::size_t i = 0; i < tests.names.size(); ++i) {
    add_rows(report, tests.names[i], tests.before[i].tally, tests.after[i].tally);
  }
  if (arguments.given("figure")) {
    write_figure(tests, text(task, ", ", arguments.word("method")), config,
                 arguments.word("figure"));
  }
  report.print(std::cout, arguments.json());
  if (tried && !arguments.json()) {
    std::cout << "\nsettings tried, the best first\n";
    tried->print(std::cout, false);
  }
}

/// The flags of `train` with the defaults of a repair.
std::vector<CliFlag> repair_flags() {
  std::vector<CliFlag> flags =
      config_options({"steps", "batch", "rate", "train_on", "columns", "seed"});
  flags = show_default(std::move(flags), "task", "the task of the run");
  flags = show_default(std::move(flags), "columns", "last with --method columns, otherwise none");
  return show_default(std::move(flags), "train_on",
                      "ood, or the last file if no file is named ood");
}

const Register command{
    {.name = "repair",
     .summary = "changes only the attention of a run, and compares the scores before and after",
     .usage = {"RUN --method NAME --out DIR [--on NAME]... [flags of train]",
               "RUN --method NAME --out DIR --sweep OPTION=VALUES... [--figure FILE]"},
     .options =
         join({{"method", "NAME", text("method of repair: ", repair_names())},
               {"out", "DIR", "folder of the repaired run"},
               {"from-step", "N", "step of the checkpoint to repair; default: the best"},
               {"top", "LIST",
                "reinforce: numbers of heads to try; default: 1, 2, 3, 4, then powers of 2 up "
                "to the number of softmax heads"},
               {"delta", "LIST", "reinforce: increases of attention weights to try", "0.5,1,2,4"},
               {"threshold", "LIST",
                "reinforce: thresholds to try; only attention weights above the threshold are "
                "increased",
                "0,0.1"},
               {"rank-on", "NAME", "reinforce: distribution for the ranking of heads", "train"},
               {"search-on", "NAME", "reinforce: distribution for the search of the best setting",
                "train"},
               {"search-samples", "N",
                "reinforce: number of samples for the ranking, and for the search", "200"}},
              join(join(scoring_options(), run_control_options()),
                   join(repair_flags(), {json_option()}))),
     .examples =
         {"repair runs/reversal-1 --method columns --steps 500 --rate 1e-2 --out runs/fixed",
          "repair runs/reversal-1 --method columns --columns 0,60..63 --out runs/fixed",
          "repair runs/reversal-1 --method rope-off --out runs/unrotated --json",
          "repair runs/addition-1 --method bias-heads --steps 1000 --out runs/biased",
          "repair runs/reversal-1 --method reinforce --sweep length=5..50:5 --out runs/reinforced"},
     .notes =
         "columns: train only the columns of every head's W_Q and W_K that --columns lists.\n"
         "rope-off: turn rotary positions off. Nothing is trained.\n"
         "bias-matrix: train only one matrix per head, which is added to the head's scores.\n"
         "bias-heads: train only additional heads, whose attention weights are added to the\n"
         "scores of the softmax heads.\n"
         "reinforce: increase the attention weights of some softmax heads on the tokens that\n"
         "the answer depends on (reference tokens). Nothing is trained. The heads are those\n"
         "with the most attention on reference tokens. The command tries all combinations of\n"
         "the values of --top (number of heads), --delta and --threshold, and writes a run\n"
         "with the best combination. The search and the final scores use different samples.\n"
         "The methods that train use the distribution of --train-on. A repair is only\n"
         "convincing with a control: repair a run that has not learned the task. If the scores\n"
         "of this run rise too, the method itself teaches the task.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::repair_command
