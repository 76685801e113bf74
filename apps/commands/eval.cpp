#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

#include "apps/compute.h"
#include "apps/html/page.h"
#include "apps/run/evaluation.h"
#include "apps/run/run_folder.h"
#include "apps/run/sample_scores.h"
#include "apps/run/sweep.h"
#include "apps/run/test_scores.h"
#include "apps/run/token_arrays.h"
#include "core/atomic_file.h"

namespace longhand::app::eval_command {
namespace {

Json row_of(const std::string& name, const tasks::Metric& metric) {
  Json row{{"on", name}, {"metric", metric.name}, {"value", metric.mean()}, {"low", {}},
           {"high", {}}, {"count", metric.count}};
  if (metric.is_share) {
    const auto interval = tasks::wilson(metric.sum, static_cast<double>(metric.count));
    row["low"] = interval.low;
    row["high"] = interval.high;
  }
  return row;
}

void add_rows(Report& report, const std::string& name, const tasks::Tally& tally) {
  for (const tasks::Metric& metric : tally.metrics()) report.add(row_of(name, metric));
}

void add_skipped(Report& report, const std::string& name, const std::string& why) {
  report.add({{"on", name},
              {"metric", "skipped: " + why},
              {"value", {}},
              {"low", {}},
              {"high", {}},
              {"count", 0}});
}

/// The scores of samples, grouped by the length of the answer. The length is the number of scored
/// tokens without the end token.
class LengthScores {
 public:
  explicit LengthScores(const tasks::Task& task) : task_(task), ends_(task.ends()) {}

  void add(std::span<const tasks::Sample> samples,
           std::span<const std::vector<std::int32_t>> said) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const tasks::Sample& sample = samples[i];
      if (sample.asked.empty()) continue;
      const std::int32_t last = sample.targets[static_cast<std::size_t>(sample.asked.back())];
      const bool is_ended = std::ranges::count(ends_, last) > 0;
      task_.score(sample, said[i], scores_[std::ssize(sample.asked) - (is_ended ? 1 : 0)]);
    }
  }

  /// Adds rows to the report for each length of answers. If there are more than 12 lengths, a row
  /// covers a range of lengths.
  void add_rows(Report& report, const std::string& name) const {
    if (scores_.empty()) return;
    constexpr std::int64_t most_rows = 12;
    const std::int64_t first = scores_.begin()->first, last = scores_.rbegin()->first;
    std::int64_t width = 1;
    if (std::ssize(scores_) > most_rows) {
      // The number of lengths per row is the first of 1, 2, 5, 10, 20, 50, ... with which the table
      // has at most `most_rows` rows.
      for (int i = 0; last / width - first / width >= most_rows; ++i) {
        width = i % 3 == 1 ? width * 5 / 2 : width * 2;
      }
    }
    for (auto score = scores_.begin(); score != scores_.end();) {
      const std::int64_t from = score->first, range = from / width;
      std::int64_t to = from;
      tasks::Tally tally;
      for (; score != scores_.end() && score->first / width == range; ++score) {
        tally.add(score->second);
        to = score->first;
      }
      for (const tasks::Metric& metric : tally.metrics()) {
        Json row = row_of(name, metric);
        row["length"] = from == to ? text(from) : text(from, '-', to);
        report.add(row);
      }
    }
  }

 private:
  const tasks::Task& task_;
  std::vector<std::int32_t> ends_;
  std::map<std::int64_t, tasks::Tally> scores_;
};

/// Refuses flags that exclude each other.
void check_flags(const Arguments& arguments) {
  const auto given = [&](const char* flag) { return arguments.given(flag); };
  if (given("text") && (given("on") || given("sweep"))) {
    wrong_usage("--text cannot be combined with --on or --sweep");
  }
  for (const char* other :
       {"on", "text", "sweep", "figure", "samples", "head", "reading", "seed", "by-length"}) {
    if (given("token-file") && given(other)) {
      wrong_usage("--", other, ": cannot be combined with --token-file");
    }
  }
  for (const char* other : {"by-length", "out"}) {
    if (given("sweep") && given(other)) {
      wrong_usage("--", other, " cannot be combined with --sweep");
    }
  }
  if (given("out")) array_file_from(arguments, "out", true);
  if (given("logits") && !given("out")) wrong_usage("--logits needs --out");
}

Report empty_report(bool by_length) {
  std::vector<Report::Column> columns{{"on", "distribution"},     {"metric", "metric"},
                                      {"value", "value", "%.4f"}, {"low", "95% from", "%.4f"},
                                      {"high", "to", "%.4f"},     {"count", "of"}};
  if (by_length) {
    columns.insert(columns.begin() + 1, {"length", "answer length", {}, [](const Json& row) {
                                           const Json* const length = row.find("length");
                                           return length ? length->string() : std::string("all");
                                         }});
  }
  return Report(std::move(columns));
}

void score_token_file(Report& report, const LoadedRun& loaded, const Arguments& arguments) {
  const std::string& file = arguments.word("token-file");
  const auto host = make_reference_backend();
  auto batches = read_token_batches(file, loaded.task->vocabulary().size());
  const TokenScores scores = score_tokens(*loaded.model, *loaded.task, std::move(batches), *host,
                                          arguments.flag("logits"));
  add_rows(report, file, scores.tally);
  if (arguments.given("out")) save_arrays(arguments.word("out"), scores.arrays);
}

void score_sweep(Report& report, const LoadedRun& loaded, const std::vector<SweepAxis>& axes,
                 const EvaluationOptions& options, const Arguments& arguments) {
  auto points = as_usage("sweep", [&] { return sweep_points(loaded.config, axes); });
  sweep(*loaded.model, points, options);
  for (const SweepPoint& point : points) add_rows(report, name_of(point, axes), point.tally);
  if (!arguments.given("figure")) return;
  html::Page page(loaded.config.kind().name + ", swept",
                  text(arguments.plain()[0], ", step ", loaded.step, ", ", options.samples,
                       " samples at each point, ", arguments.word("reading")));
  page.add("Figures", sweep_charts(points, axes));
  page.add("Configuration", html::code(loaded.config.ini()));
  write_atomically(arguments.word("figure"), page.render());
}

void score_distributions(Report& report, const LoadedRun& loaded,
                         const std::vector<std::string>& names, EvaluationOptions options,
                         const Arguments& arguments) {
  std::vector<std::unique_ptr<tasks::Task>> tests;
  for (const std::string& name : names) {
    const auto make = [&] { return loaded.config.task(name); };
    tests.push_back(arguments.given("on") ? as_usage("on", make) : make());
  }
  const bool by_length = arguments.flag("by-length"), writes = arguments.given("out");
  const auto host = make_reference_backend();
  std::vector<NamedTensor> arrays;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    const std::string why = unreadable(loaded.model->config(), *tests[i]);
    LONGHAND_CHECK(why.empty() || !arguments.given("on"), names[i], ": ", why);
    if (!why.empty()) {
      add_skipped(report, names[i], why);
      continue;
    }
    SampleScores scores(*loaded.model, *tests[i], names[i], arguments.flag("logits"));
    LengthScores lengths(*tests[i]);
    options.told = [&](auto samples, auto said) {
      if (writes) scores.add(samples, said);
      if (by_length) lengths.add(samples, said);
    };
    add_rows(report, names[i], evaluate(*loaded.model, *tests[i], options));
    if (by_length) lengths.add_rows(report, names[i]);
    if (!writes) continue;
    const std::vector<NamedTensor> its = scores.arrays(*host);
    arrays.insert(arrays.end(), its.begin(), its.end());
  }
  if (writes) save_arrays(arguments.word("out"), arrays);
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const std::string& folder = arguments.plain()[0];
  const Reading reading = reading_from(arguments);
  const std::vector<SweepAxis> axes = axes_from(arguments);
  check_flags(arguments);
  EvaluationOptions options{.samples = arguments.integer("samples", 1, 1 << 24),
                            .seed = seed_from(arguments),
                            .reading = reading};
  LoadedRun loaded = load_run(folder, load_options(arguments));
  const std::vector<std::string> names =
      arguments.given("text")
          ? std::vector{as_usage("text",
                                 [&] { return loaded.config.add_file(arguments.word("text")); })}
          : distributions_from(arguments, loaded.config);
  options.head = static_cast<int>(arguments.integer("head", 0, loaded.task->heads() - 1));
  Report report = empty_report(arguments.flag("by-length"));
  report.set("run", folder);
  report.set("step", loaded.step);
  report.set("seed", options.seed);
  report.set("reading", arguments.word("reading"));
  const auto start = std::chrono::steady_clock::now();
  if (arguments.given("token-file")) {
    score_token_file(report, loaded, arguments);
  } else if (!axes.empty()) {
    score_sweep(report, loaded, axes, options, arguments);
  } else {
    score_distributions(report, loaded, names, options, arguments);
  }
  report.set("seconds",
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "eval",
     .summary = "evaluates the model of a run on the distributions of its task",
     .usage = {"RUN [--on NAME]... [--samples N] [--out FILE]",
               "RUN --text FILE [--by-length] [--reading HOW]",
               "RUN --token-file FILE [--out FILE]",
               "RUN --sweep OPTION=VALUES... [--figure FILE]"},
     .options = join(
         join(run_options(), scoring_options()),
         {{"seed", "N", "seed of the samples", "1"},
          {"text", "FILE",
           "file to evaluate on, if the task is text or files; default: the run's files"},
          {"by-length", "", "also print scores per answer length, in tokens without the end token"},
          {"head", "N", "index of the output head to evaluate", "0"},
          {"token-file", "FILE", "evaluate on the tokens of a file instead of samples; see below"},
          {"out", "FILE", "also write predictions and losses as arrays; see below"},
          {"logits", "", "with --out: also write the logits"},
          json_option()}),
     .examples = {"eval runs/flip-flop-1 --samples 1000", "eval runs/flip-flop-1 --on 4x --json",
                  "eval runs/gemma --text book.txt --samples 20",
                  "eval runs/own-1 --text longer.jsonl --by-length --reading decoded",
                  "eval runs/cycle-tracing-1 --reading decoded --samples 100",
                  "eval runs/sorting-1 --reading decoded --sweep length=2..100 --figure fig.html",
                  "eval runs/sorting-1 --sweep length=20,50,100 --sweep repeat=2..5 --json",
                  "eval runs/sorting-1 --on test --out said.npz --logits",
                  "eval runs/book --token-file tokens.npy --out losses.npz"},
     .notes = "--reading forced: the model reads the sample's own tokens (teacher forcing).\n"
              "--reading decoded: the model reads its own predictions in place of the answer's\n"
              "tokens.\n"
              "--sweep OPTION=VALUES: VALUES is a list of words, numbers and ranges, separated\n"
              "by commas. A range is A..B or A..B:STEP. Several sweeps evaluate all\n"
              "combinations of their values. Other task options keep the values used for\n"
              "training.\n"
              "--token-file FILE: a .npy, .npz or .safetensors file with integers [n] or\n"
              "[sequences, n]. If the file has several arrays, the tokens must be in the array\n"
              "named tokens. Optional arrays are lengths, targets (default: the next tokens),\n"
              "weights (of the targets in the loss) and positions (position ids of the tokens).\n"
              "Files written by `data --step --out` are accepted too.\n"
              "--out FILE: a .npz or .safetensors file. For each distribution NAME it contains\n"
              "the samples (NAME.tokens, NAME.lengths) and the indices of the scored\n"
              "predictions (NAME.asked). NAME.asked_lengths is the number of scored predictions\n"
              "per sample. NAME.said contains the predicted classes, NAME.wanted the target\n"
              "classes, NAME.losses the losses, and NAME.scores.METRIC the scores. With\n"
              "--token-file, the file contains the arrays tokens, lengths, targets, said\n"
              "(predicted classes) and losses.\n"
              "--logits: adds the array NAME.logits [scored predictions, classes]. The array is\n"
              "named logits if --token-file is given.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::eval_command
