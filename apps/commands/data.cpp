#include <iostream>

#include "apps/compute.h"
#include "apps/report.h"
#include "apps/run/config.h"
#include "core/quote.h"
#include "core/text_file.h"
#include "tasks/answers.h"

namespace longhand::app::data_command {
namespace {

/// A sample's text, on lines of its own. An answer that does not continue the prompt has an arrow
/// before it.
void print(const tasks::Task& task, const tasks::Sample& sample) {
  const auto [prompt, answer] = task.as_text(sample);
  std::cout << prompt << (task.outputs().says_next ? "" : " -> ") << answer
            << (answer.ends_with('\n') ? "" : "\n");
}

/// An outside sample, and with --mask the characters, by number from 0, that are to be looked at
/// for each of its answer: {"pairs": [[predicted, looked at], ...]}, or in words.
void show_sample(const tasks::Task& task, const Arguments& arguments) {
  const tasks::Sample sample = task.sample_of(arguments.word("text"));
  const auto rows =
      arguments.flag("mask") ? task.reference(sample) : std::vector<tasks::ReferenceRow>();
  if (!arguments.json()) {
    const auto label = [&](std::int32_t at) {
      const auto token = sample.tokens[static_cast<std::size_t>(at)];
      return text(at, ' ', quote(task.vocabulary().text(token)));
    };
    print(task, sample);
    for (const tasks::ReferenceRow& row : rows) {
      std::cout << label(row.row + 1);
      for (const std::int32_t column : row.columns) {
        std::cout << (column == row.columns.front() ? ": " : ", ") << label(column);
      }
      std::cout << '\n';
    }
    return;
  }
  if (!arguments.flag("mask")) {
    std::cout << Json{{"tokens", sample.tokens}, {"asked", sample.asked}} << '\n';
    return;
  }
  Json pairs = Json::array();
  for (const tasks::ReferenceRow& row : rows) {
    for (const std::int32_t column : row.columns) {
      pairs.push_back(std::vector<std::int32_t>{row.row + 1, column});
    }
  }
  std::cout << Json{{"pairs", pairs}} << '\n';
}

/// Samples of a task on standard output: text, or one JSON object a line.
void show(const Arguments& arguments) {
  if (arguments.given("text")) {  // of task text it is the file to learn, of others a sample
    const Config config = Config::from(arguments.without("text"));
    if (config.text("task.name") != "text") return show_sample(*config.task(), arguments);
  }
  const Config config = Config::from(arguments);
  const std::string on = arguments.given("on") ? arguments.word("on") : "";
  const auto task = as_usage("on", [&] { return config.task(on); });
  const auto head = static_cast<int>(arguments.integer("head", 0, task->heads() - 1));
  const std::int64_t count = arguments.integer("count", 0, 1 << 30);
  for (std::int64_t i = 0; i < count; ++i) {
    Rng rng(config.seed(), Purpose::data, 1, static_cast<std::uint32_t>(i));
    const tasks::Sample sample = task->sample(rng, head);
    if (!arguments.json()) {
      print(*task, sample);
      continue;
    }
    const auto [prompt, answer] = task->as_text(sample);
    Json rows = Json::array();
    if (arguments.flag("mask")) {
      for (const tasks::ReferenceRow& row : task->reference(sample)) {
        rows.push_back({{"row", row.row}, {"columns", row.columns}});
      }
    }
    Json line{
        {"prompt", prompt}, {"answer", answer}, {"tokens", sample.tokens}, {"asked", sample.asked}};
    if (arguments.flag("mask")) line["mask"] = rows;
    std::cout << line << '\n';
  }
}

/// Outside pairs, one JSON object {"prompt", "answer"} a line, each judged by the task's rules.
void check(const Arguments& arguments, const std::string& file) {
  const Config config = Config::from(arguments);
  const auto task = config.task();
  const auto head = static_cast<int>(arguments.integer("head", 0, task->heads() - 1));
  LineReader lines(file, tasks::Answer::longest_line);
  std::int64_t number = 0, wrong = 0;
  Report report({{"line", "line"}, {"verdict", "what is wrong"}});
  while (const auto line = lines.next()) {
    number = lines.number();
    if (line->empty()) continue;
    const tasks::Answer pair = tasks::Answer::parse(*line, text(file, ':', number));
    const auto verdict = task->check(pair.prompt, pair.answer, head);
    if (!verdict) continue;
    ++wrong;
    report.add({{"line", number}, {"verdict", *verdict}});
  }
  report.set("file", file);
  report.set("checked", number);
  report.set("wrong", wrong);
  if (wrong || arguments.json()) report.print(std::cout, arguments.json());
  LONGHAND_CHECK(wrong == 0, file, ": ", wrong, " of ", number, " answers are wrong");
  if (!arguments.json()) std::cout << number << " answers, all right\n";
}

void run(const Arguments& arguments) {
  const auto& words = arguments.plain();
  if (words.empty()) return show(arguments);
  if (words.size() != 2 || words[0] != "check") wrong_usage("expected nothing, or: check FILE");
  check(arguments, words[1]);
}

const Register command{
    {.name = "data",
     .summary = "prints samples of a task, or checks an outside file of answers",
     .usage = {"--task NAME [--on NAME] [--count N]", "--task NAME --text SAMPLE [--mask]",
               "check FILE --task NAME"},
     .options = join({{"count", "N", "samples", "10"},
                      {"on", "NAME", "a distribution of the task; that of training if not given"},
                      {"head", "N", "the output head asked", "0"},
                      {"mask", "", "with --json or --text: where each answer finds what it needs"},
                      {"config", "FILE", "a config.ini whose settings flags may override"}},
                     join(config_options(), {json_option()})),
     .examples = {"data --task flip-flop --task.instructions 16 --count 3",
                  "data --task reversal --text dh13=31hd --mask",
                  "data check answers.jsonl --task cycle-tracing"},
     .notes =
         "`check` reads one object {\"prompt\": ..., \"answer\": ...} a line and judges each by\n"
         "the task's definition; it exits with 1 if one is wrong.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::data_command
