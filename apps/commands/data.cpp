#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "apps/compute.h"
#include "apps/report.h"
#include "apps/run/run_folder.h"
#include "apps/run/sample_records.h"
#include "core/commas.h"
#include "core/npy.h"
#include "core/quote.h"
#include "core/text_file.h"
#include "nn/training/step_trace.h"
#include "tasks/answers.h"

namespace longhand::app::data_command {
namespace {

/// Prints a sample's prompt and answer. If the answer is not a continuation of the prompt, an arrow
/// separates them.
void print(const tasks::Task& task, const tasks::Sample& sample) {
  const auto [prompt, answer] = task.as_text(sample);
  std::cout << prompt << (task.outputs().says_next ? "" : " -> ") << answer
            << (answer.ends_with('\n') ? "" : "\n");
}

/// Prints the sample given with --text. With --mask, also prints the prompt characters that each
/// answer character should attend to, as text or as {"pairs": [[ANSWER, PROMPT], ...]}. Characters
/// are numbered from 0.
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

/// Prints samples of a task, as text or as one JSON object per line.
void show(const Arguments& arguments) {
  // For the task `text`, --text is the file to train on. For all other tasks, --text is a sample.
  if (arguments.given("text")) {
    const Config config = Config::from(arguments.without("text"));
    if (config.kind().name != "text") return show_sample(*config.task(), arguments);
  }
  const Config config = Config::from(arguments);
  const std::string on = arguments.given("on") ? arguments.word("on") : "";
  const auto task = as_usage("on", [&] { return config.task(on); });
  const auto head = static_cast<int>(arguments.integer("head", 0, task->heads() - 1));
  const std::int64_t count = arguments.integer("count", 0, 1 << 30);
  for (std::int64_t i = 0; i < count; ++i) {
    Rng rng(config.training().seed, Purpose::data, 1, static_cast<std::uint32_t>(i));
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

/// Writes the task as a folder of files that `--task FOLDER` reads.
void write_files(const Arguments& arguments) {
  for (const char* other : {"on", "head", "text"}) {
    if (arguments.given(other)) wrong_usage("--", other, ": cannot be combined with --out");
  }
  const Config config = Config::from(arguments);
  const std::string& folder = arguments.word("out");
  const RecordCounts counts{
      .train = arguments.given("count") ? arguments.integer("count", 1, 1 << 30) : 10'000,
      .test = arguments.integer("test-count", 1, 1 << 30),
      .with_pairs = arguments.flag("mask")};
  const WrittenTask written = write_records(config, folder, counts);
  Report report({{"file", "file"}, {"samples", "samples"}});
  for (const auto& [file, samples] : written.files) {
    report.add({{"file", file.string()}, {"samples", samples}});
  }
  const std::string command = text("longhand train --task ", folder, "/", written.flags);
  report.set("command", command);
  report.print(std::cout, arguments.json());
  if (!arguments.json()) std::cout << "\n" << command << '\n';
}

/// Divides a table of prompts and answers into the training and test files of a task.
void split(const Arguments& arguments, const std::string& table) {
  if (!arguments.given("out")) wrong_usage("split: expected --out FOLDER");
  TableSplit how;
  how.held_out = arguments.number("held-out", 0, 1);
  const std::string& fields = arguments.word("fields");
  const std::size_t comma = fields.find(',');
  if (comma == std::string::npos) wrong_usage("--fields: expected PROMPT,ANSWER");
  how.prompt = fields.substr(0, comma);
  how.answer = fields.substr(comma + 1);
  const std::string& measured = arguments.word("length-of");
  if (measured != "prompt" && measured != "answer") {
    wrong_usage("--length-of: expected prompt or answer, got ", quote(measured));
  }
  how.by_prompt = measured == "prompt";
  if (arguments.given("lengths")) {
    for (const std::string_view length : at_commas(arguments.word("lengths"))) {
      how.longest.push_back(parse_integer("--lengths", length, 1, 1 << 20));
    }
    if (std::ranges::adjacent_find(how.longest, std::greater_equal()) != how.longest.end()) {
      wrong_usage("--lengths: expected ascending numbers, got ", quote(arguments.word("lengths")));
    }
  }
  const std::string& folder = arguments.word("out");
  const SplitTable made = split_table(table, folder, how);
  Report report({{"file", "file"}, {"rows", "rows"}});
  for (const auto& [file, rows] : made.files) {
    report.add({{"file", file.string()}, {"rows", rows}});
  }
  const std::string command = text("longhand train --task ", folder, "/");
  report.set("left", made.left);
  report.set("command", command);
  report.print(std::cout, arguments.json());
  if (arguments.json()) return;
  if (made.left > 0) std::cout << made.left << " rows are longer than all lengths\n";
  std::cout << "\n" << command << '\n';
}

/// The settings of the run that the command line names. If it names no run, the settings given by
/// flags.
Config config_of_run(const Arguments& arguments) {
  if (arguments.plain().empty()) return Config::from(arguments);
  for (const CliFlag& option : join(config_options(), {{"config", "", ""}})) {
    if (arguments.given(option.name)) {
      wrong_usage(shown_flag(option.name),
                  ": cannot be combined with a run, which has its own settings");
    }
  }
  return RunFolder(arguments.plain()[0]).config();
}

/// The scored targets of a sequence as a list of "TOKEN: CLASS". TOKEN is the index of a token, and
/// CLASS is the class to be predicted at this token. If a token has several predictions, TOKEN is
/// followed by a dot and the index of the prediction. If the class is the next token, the text of
/// this next token follows CLASS. If the targets have weights, "weight" and the weight follow.
std::string wanted_text(const nn::Batch& batch, std::int64_t first, std::int64_t length,
                        const tasks::Task& task) {
  std::string all;
  for (std::int64_t i = first * batch.groups; i < (first + length) * batch.groups; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int32_t target = batch.targets[at];
    if (target < 0) continue;
    const std::int64_t token = i / batch.groups - first;
    all += text(all.empty() ? "" : ", ", token);
    if (batch.groups > 1) all += text('.', i % batch.groups);
    all += text(": ", target);
    if (task.outputs().says_next) all += text(' ', quote(task.vocabulary().text(target)));
    if (!batch.weights.empty()) all += text(" weight ", batch.weights[at]);
  }
  return all.empty() ? "nothing" : all;
}

void print_batch(const nn::Batch& batch, std::int64_t place, const tasks::Task& task) {
  std::cout << "batch " << place << ": " << batch.lengths.size() << " sequences, "
            << batch.tokens.size() << " tokens, weight " << batch.total_weight();
  if (task.heads() > 1) std::cout << ", asked " << task.head_name(static_cast<int>(batch.head));
  std::cout << '\n';
  std::int64_t first = 0;
  for (const std::int32_t length : batch.lengths) {
    const auto tokens =
        std::span(batch.tokens)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(length));
    std::cout << "  " << '"' << printable(task.vocabulary().decode(tokens)) << "\" wants "
              << wanted_text(batch, first, length, task) << '\n';
    first += length;
  }
}

Json json_of(const nn::Batch& batch) {
  Json all{{"tokens", batch.tokens}, {"lengths", batch.lengths}, {"targets", batch.targets},
           {"groups", batch.groups}, {"head", batch.head},       {"weight", batch.total_weight()}};
  if (!batch.positions.empty()) all["positions"] = batch.positions;
  if (!batch.weights.empty()) {
    all["weights"] = std::vector<double>(batch.weights.begin(), batch.weights.end());
  }
  return all;
}

/// Prints the batches of one training step.
void show_step(const Arguments& arguments) {
  const Config config = config_of_run(arguments);
  const std::int64_t step =
      arguments.integer("step", 1, std::max<std::int64_t>(1, config.training().schedule.steps));
  const std::shared_ptr<const tasks::Task> task = config.learned();
  const nn::BatchSource source = config.batches(task);
  const std::int64_t count = config.training().batch_plan().batches;
  const auto host = make_reference_backend();
  std::vector<NamedTensor> arrays;
  if (arguments.given("out")) array_file_from(arguments, "out", true);
  Json batches = Json::array();
  for (std::int64_t place = 0; place < count; ++place) {
    const nn::Batch batch = source(step, place);
    if (arguments.given("out")) {
      const auto its = nn::arrays_of(batch, *host, nn::batch_prefix(place));
      arrays.insert(arrays.end(), its.begin(), its.end());
    } else if (arguments.json()) {
      batches.push_back(json_of(batch));
    } else {
      print_batch(batch, place, *task);
    }
  }
  if (arguments.given("out")) save_arrays(arguments.word("out"), arrays);
  if (!arguments.json()) return;
  Json all{{"step", step}};
  if (arguments.given("out")) {
    all["out"] = arguments.word("out");
  } else {
    all["batches"] = std::move(batches);
  }
  std::cout << all << '\n';
}

/// Checks pairs of prompt and answer from a file by the task's rules. Each line is a JSON object
/// {"prompt", "answer"}.
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
  if (!arguments.json()) std::cout << number << " answers, all correct\n";
}

void run(const Arguments& arguments) {
  const auto& words = arguments.plain();
  if (arguments.given("step")) {
    if (words.size() > 1) wrong_usage("--step cannot be combined with more than one run folder");
    for (const char* other : {"on", "count", "test-count", "mask", "head"}) {
      if (arguments.given(other)) wrong_usage("--", other, ": cannot be combined with --step");
    }
    return show_step(arguments);
  }
  const bool splits = words.size() == 2 && words[0] == "split";
  for (const char* flag : {"fields", "length-of", "lengths", "held-out"}) {
    if (arguments.given(flag) && !splits)
      wrong_usage("--", flag, ": can only be used with `split FILE`");
  }
  if (splits) return split(arguments, words[1]);
  if (arguments.given("test-count") && !arguments.given("out")) {
    wrong_usage("--test-count needs --out");
  }
  if (arguments.given("out")) {
    if (!words.empty() && words[0] == "check") wrong_usage("--out: cannot be used with `check`");
    if (words == std::vector<std::string>{"split"}) wrong_usage("split: expected a file, got none");
    if (!words.empty())
      wrong_usage(
          "--out with a run folder needs --step; to write samples of a task, use --task NAME "
          "instead of a run folder");
    const std::filesystem::path out(arguments.word("out"));
    if (out.has_extension() && is_array_file(out)) {
      wrong_usage(
          "--out: expected a folder; .npz and .safetensors files can only be written with --step");
    }
    return write_files(arguments);
  }
  if (arguments.flag("mask") && !arguments.json() && !arguments.given("text")) {
    wrong_usage("--mask needs --text, --json or --out");
  }
  if (words.empty()) return show(arguments);
  if (words.size() != 2 || words[0] != "check") {
    wrong_usage("expected no arguments, `check FILE`, `split FILE`, or a run folder with --step");
  }
  check(arguments, words[1]);
}

const Register command{
    {.name = "data",
     .summary =
         "prints or writes samples and batches of a task; also checks answers and splits tables",
     .usage = {"--task NAME [--on NAME] [--count N]", "--task NAME --text SAMPLE [--mask]",
               "--task NAME --out FOLDER [--count N] [--test-count N] [--mask]",
               "RUN --step N [--out FILE]", "--task NAME [flags of train] --step N [--out FILE]",
               "check FILE --task NAME", "split FILE.csv --out FOLDER [--lengths N,N...]"},
     .options = join(
         {{"count", "N",
           "with --out FOLDER: number of training samples, 10000 by default; otherwise: number of "
           "samples to print",
           "10"},
          {"test-count", "N", "with --out FOLDER: number of samples per test file", "1000"},
          {"on", "NAME", "distribution to draw samples from; default: the training distribution"},
          {"head", "N", "index of the kind of answer, if the task has several kinds", "0"},
          {"mask", "",
           "with --json, --text or --out FOLDER: also output the positions that each answer "
           "depends on"},
          {"step", "N", "print the batches of training step N; with --out: write them to a file"},
          {"out", "PATH", "output folder; with --step: output file, .npz or .safetensors"},
          {"config", "FILE", "configuration file (config.ini); flags override its settings"},
          {"fields", "P,A", "split: names of the prompt and answer columns", "prompt,answer"},
          {"lengths", "N,N...",
           "split: ascending maximum lengths of rows; the first is for the training file, "
           "each further one for a test file"},
          {"length-of", "WHAT",
           "split: column that determines the length of a row: prompt or answer", "answer"},
          {"held-out", "X", "split: fraction of rows to hold out in id.jsonl; see below", "0.1"}},
         join(config_options({"batch", "seed"}), {json_option()})),
     .examples = {"data --task flip-flop --task.instructions 16 --count 3",
                  "data --task reversal --text dh13=31hd --mask", "data runs/flip-flop-1 --step 7",
                  "data runs/flip-flop-1 --step 7 --out 7.npz",
                  "data --task reversal --out my-task --count 5000",
                  "data split table.csv --lengths 10,20,40 --out my-task",
                  "data check answers.jsonl --task cycle-tracing"},
     .notes = "`check` reads a file with one JSON object {\"prompt\": ..., \"answer\": ...} per\n"
              "line and checks each answer by the rules of the task. The exit status is 1 if an\n"
              "answer is wrong.\n"
              "--out FOLDER writes train.jsonl, id.jsonl and one file for each other\n"
              "distribution of the task. id.jsonl contains further samples of the training\n"
              "distribution. To train on the files, use `longhand train --task FOLDER/`.\n"
              "`split` reads a CSV or TSV file whose first row names the columns. Lengths are\n"
              "in characters. If a row is not longer than the first number of --lengths, it is\n"
              "written to train.jsonl, or to id.jsonl if it is held out. Without --lengths,\n"
              "this applies to all rows. For each further number N, length-N.jsonl contains the\n"
              "rows that are longer than the number before and not longer than N. If --lengths\n"
              "is a single number, all longer rows are written to ood.jsonl.\n"
              "--step prints each sequence in quotes, followed by the positions and classes of\n"
              "its scored targets. If a target is the next token, its text is printed too.\n"
              "--step with --out FILE writes four arrays for each batch K: batches.K.tokens,\n"
              "batches.K.lengths, batches.K.targets and batches.K.head. The array head contains\n"
              "the index of the output head. If the batch uses them, the file also contains\n"
              "batches.K.weights (weights of the targets in the loss) and batches.K.positions\n"
              "(position ids of the tokens). The shape of targets is [tokens, predictions per\n"
              "token], and a target of -1 is not scored.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::data_command
