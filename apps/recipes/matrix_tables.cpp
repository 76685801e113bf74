#include <algorithm>
#include <list>

#include "apps/recipes/chosen.h"
#include "apps/recipes/matrix.h"
#include "core/commas.h"
#include "core/quote.h"
#include "tasks/task_files.h"

/// The rows (mechanisms) and columns (tasks) of the matrix.
namespace longhand::app::matrix {
namespace {

constexpr Mechanism all_mechanisms[] = {
    {"rope", "softmax, RoPE", "softmax:4", "rotary", Scale::smoke},
    {"nope", "softmax, no positions", "softmax:4", "none", Scale::smoke},
    {"alibi", "ALiBi", "alibi:4", "none", Scale::smoke},
    {"fox", "forgetting (FoX)", "fox:4", "none", Scale::smoke},
    {"fal", "FAL beside softmax, RoPE", "softmax:3,fal:1", "rotary", Scale::smoke},
    {"chacal", "ChaCAL, RoPE", "chacal:4", "rotary", Scale::smoke},
    {"ssmax", "SSMax, RoPE", "ssmax:4", "rotary", Scale::paper},
    {"sink", "softmax with a sink, RoPE", "sink:4", "rotary", Scale::paper},
    {"stick", "stick-breaking", "stick:4", "none"},
    {"tra", "threshold relative attention", "tra:4", "none"},
    {"entmax", "ASEntmax beside ALiBi", "alibi:2,entmax:2", "none"},
    {"delta", "Gated DeltaNet", "delta:4", "none"},
    {"deltaformer", "DeltaFormer", "deltaformer:4", "none", Scale::paper},
    {"path", "PaTH", "path:4", "none", Scale::paper, "path_rank=8"},
    {"selective_rope", "Selective RoPE", "selective_rope:4", "none", Scale::paper, "angle_rank=8"},
    {"lstm", "LSTM", "lstm:1", "none", Scale::laptop, "deviation=0.1", 9},
    {"fox-6", "FoX that forgets little at first", "fox:4", "none", Scale::paper, "forget_bias=6"},
    {"fal-nope", "FAL beside softmax, no positions", "softmax:3,fal:1", "none", Scale::paper},
    {"chacal-nope", "ChaCAL, no positions", "chacal:4", "none", Scale::paper},
    {"delta-plain", "DeltaNet, nothing forgotten", "delta:4", "none", Scale::paper, "delta_gate=0"},
    {"coupled", "softmax, RoPE by coupled positions", "softmax:4", "rotary", Scale::paper,
     "position_ids=coupled"},
    {"random", "softmax, RoPE by random positions", "softmax:4", "rotary", Scale::paper,
     "position_ids=random"},
    {"delta-positive", "Gated DeltaNet, eigenvalues from 0 to 1", "delta:4", "none", Scale::paper,
     "delta_negative=0"},
};

std::string range(std::int64_t least, std::int64_t most, bool exactly) {
  return exactly ? text(most) : text(least, '-', most);
}

std::string by_scale(Scale scale, const char* smoke, const char* laptop, const char* paper) {
  return scale == Scale::smoke ? smoke : scale == Scale::laptop ? laptop : paper;
}

Settings flip_flop(Scale, std::int64_t n, bool) { return {{"instructions", text(n)}}; }

/// Options of associative recall. In the longest samples, n / 8 pairs of a key and a value fill a
/// quarter of the n tokens.
Settings recall(Scale scale, std::int64_t n, bool exactly) {
  return {{"tokens", range(n / 2, n, exactly)},
          {"pairs", text(n / 8)},
          {"vocabulary", by_scale(scale, "128", "256", "8192")}};
}

/// Like recall(), but each key has three values, and the answer is the second-last value of the
/// key.
Settings recall_before_last(Scale scale, std::int64_t n, bool exactly) {
  Settings settings = recall(scale, n, exactly);
  settings["pairs"] = text(n / 16);
  settings["repeats"] = "3";
  settings["back"] = "2";
  return settings;
}

Settings selective_copying(Scale scale, std::int64_t n, bool exactly) {
  return {{"noise", range(n / 2, n, exactly)},
          {"data", by_scale(scale, "4", "8", "16")},
          {"symbols", by_scale(scale, "8", "16", "16")}};
}

Settings plain_copying(Scale, std::int64_t n, bool exactly) {
  return {{"noise", range(1, n, exactly)}, {"data", "0"}, {"symbols", "16"}};
}

Settings last_product(const char* group, std::int64_t n, bool exactly) {
  return {{"group", group},
          {"min", exactly ? text(n) : text(std::min<std::int64_t>(3, n))},
          {"max", text(n)},
          {"asked", "last"}};
}
Settings parity(Scale, std::int64_t n, bool exactly) { return last_product("s2", n, exactly); }
Settings sums(Scale, std::int64_t n, bool exactly) { return last_product("z5", n, exactly); }

Settings all_products(const char* group, std::int64_t n) {
  return {{"group", group}, {"max", text(n)}};
}
Settings s3(Scale, std::int64_t n, bool) { return all_products("s3", n); }
Settings a5(Scale, std::int64_t n, bool) { return all_products("a5", n); }
Settings s5(Scale, std::int64_t n, bool) { return all_products("s5", n); }

Settings sorting(Scale, std::int64_t n, bool exactly) {
  if (exactly) return {{"length", text(n)}};
  return {{"short", text(std::max<std::int64_t>(2, n / 4))}, {"long", text(n)}};
}

Settings reversal(Scale, std::int64_t n, bool exactly) {
  return {{"length", range(1, n, exactly)}};
}
Settings addition(Scale, std::int64_t n, bool exactly) {
  return {{"digits", range(1, n, exactly)}};
}

Settings cycle(Scale, std::int64_t n, bool exactly) {
  return {{"tokenization", "numbers"},
          {"min-nodes", exactly ? text(n) : text(n / 3)},
          {"max-nodes", text(n)}};
}

Settings boxes(Scale, std::int64_t n, bool) { return {{"operations", text(n)}}; }

constexpr std::string_view sparse_and_drift[] = {"sparse", "drift"};

constexpr MatrixTask all_tasks_of_matrix[] = {
    {"flip-flop",
     "Flip-flop",
     "flip-flop",
     "instructions",
     {16, 64, 256},
     flip_flop,
     "TRA, 4 layers, learns F(0.8) at 512 instructions and errs nowhere, sparse and dense, in each "
     "of 50 seeds (arXiv:2503.23174).",
     Scale::smoke,
     sparse_and_drift},
    {"recall",
     "Associative recall",
     "recall",
     "tokens",
     {32, 64, 256},
     recall,
     "ASEntmax, multi-query multi-token recall: 99.6% at 64 times the length (arXiv:2506.16640).",
     Scale::smoke},
    {"copying",
     "Selective copying",
     "copying",
     "places",
     {16, 64, 256},
     selective_copying,
     "none found for longer samples with attention.",
     Scale::smoke},
    {"parity",
     "Parity",
     "words",
     "bits",
     {10, 40, 40},
     parity,
     "DeltaNet with eigenvalues in [-1, 1]: 1.000 at 40 to 256 bits, learned on up to 40, scaled "
     "so "
     "that guesses are 0 (arXiv:2411.12537).",
     Scale::smoke},
    {"recall-2",
     "Recall of the last value but one",
     "recall",
     "tokens",
     {32, 64, 256},
     recall_before_last,
     "none found for these lengths; PaTH's recall of the value N before (arXiv:2505.16381) is in "
     "distribution.",
     Scale::paper},
    {"sums",
     "Sums modulo 5",
     "words",
     "numbers",
     {10, 40, 40},
     sums,
     "DeltaNet with eigenvalues in [-1, 1] 0.971, Gated DeltaNet 0.993, each at its own lengths, "
     "scaled so that guesses are 0.",
     Scale::paper},
    {"a5",
     "Words in A5",
     "words",
     "elements",
     {16, 16, 64},
     a5,
     "none found for longer words with attention; PaTH learns A5 with fewer layers than softmax "
     "(arXiv:2505.16381).",
     Scale::paper},
    {"sorting",
     "Sorting",
     "sorting",
     "numbers",
     {8, 20, 20},
     sorting,
     "ASEntmax at 2, 4 and 8 times the length: 100, 79.7 and 0% (arXiv:2506.16640)."},
    {"reversal",
     "Reversal",
     "reversal",
     "characters",
     {6, 10, 40},
     reversal,
     "ASEntmax 99.8, 96.4 and 56.7% (arXiv:2506.16640)."},
    {"cycle",
     "Cycle tracing",
     "cycle-tracing",
     "nodes",
     {6, 12, 50},
     cycle,
     "FAL beside softmax: 1.00 at 4 times and 0.995 at 8 times the nodes, decoded.",
     Scale::paper},
    {"copy",
     "Copying",
     "copying",
     "symbols",
     {8, 16, 64},
     plain_copying,
     "ASEntmax 86.6% at 64 times the length (arXiv:2506.16640).",
     Scale::paper},
    {"s3", "Words in S3", "words", "elements", {16, 16, 64}, s3, "none found.", Scale::paper},
    {"s5",
     "Words in S5",
     "words",
     "elements",
     {16, 16, 128},
     s5,
     "DeltaProduct of 4 steps, 1 layer, learned at 128: right to about 180, half right near 330 "
     "(a figure).",
     Scale::paper},
    {"addition",
     "Addition",
     "addition",
     "digits",
     {3, 4, 20},
     addition,
     "Position coupling, 30 to 200 digits, above 95% (arXiv:2405.20671); Abacus, 20 to 100 digits, "
     "99% (arXiv:2405.17399).",
     Scale::paper},
    {"boxes",
     "Boxes",
     "boxes",
     "operations",
     {4, 8, 32},
     boxes,
     "none found for more operations than in training; ChaCAL, 1 layer, in distribution: 70.6%.",
     Scale::paper},
};

struct Figure {
  std::string_view task, mechanism, sentence;
};
constexpr Figure figures[] = {
    {"flip-flop", "rope",
     "PaTH's Table 1 (1 layer, 2 heads, width 64): errors of 6.9, 40.3 and 0.01% in distribution, "
     "sparse and dense. FAL's Table 1 (6 layers): sequences right 1.00, sparse 0.151, at twice the "
     "length 0.50."},
    {"flip-flop", "fox", "PaTH's Table 1: errors of 8.3, 36.3 and 0%."},
    {"flip-flop", "lstm",
     "1 layer of width 128, from a 20th of a transformer's samples: right in each of 100 runs."},
    {"flip-flop", "stick", "PaTH's Table 1: errors of 9.6, 38.9 and 0%."},
    {"flip-flop", "tra",
     "Exact match of 1.0 in distribution, sparse and dense, in each of 50 seeds."},
    {"flip-flop", "fal",
     "FAL's Table 1: sequences right 1.00, sparse 1.00, at twice the length 1.00."},
    {"recall", "rope", "MQAR as Zoology has it, in distribution (128 tokens, 32 pairs): 99.1%."},
    {"parity", "rope", "A transformer, 40 to 256 bits, learned on up to 40: 0.022 above guesses."},
    {"parity", "delta", "40 to 256 bits, learned on up to 40: 1.000 above guesses."},
    {"parity", "delta-plain", "40 to 256 bits, learned on up to 40: 1.000 above guesses."},
    {"sums", "delta", "0.993 above guesses, at its own lengths."},
    {"sums", "delta-plain", "0.971 above guesses, at its own lengths."},
    {"s5", "delta", "DeltaProduct of 1 step, 1 layer, learned at 128: 0 (a figure)."},
    {"sums", "rope", "A transformer, 40 to 256 numbers: 0.031 above guesses."},
    {"sorting", "rope", "Softmax at twice the length: 0% (arXiv:2506.16640)."},
    {"sorting", "entmax", "ASEntmax at 2, 4 and 8 times the length: 100, 79.7 and 0%."},
    {"reversal", "entmax", "ASEntmax: 99.8, 96.4 and 56.7%."},
    {"reversal", "rope",
     "AttentionSpan, Llama-3.2-1B from random weights, 11 to 50 characters: 0.06%."},
    {"cycle", "rope", "FAL's Table 1: 0.9999; at 4 and 8 times the nodes 0.178 and 0.04, decoded."},
    {"cycle", "fal", "FAL's Table 1: 1.00; at 4 and 8 times the nodes 1.00 and 0.995, decoded."},
    {"copy", "entmax", "ASEntmax at 64 times the length: 86.6%."},
    {"addition", "coupled",
     "Position coupling, learned positions, 30 to 200 digits: above 95% (arXiv:2405.20671)."},
    {"addition", "rope", "AttentionSpan, Llama-3.2-1B from random weights, 5 to 10 digits: 0.17%."},
    {"boxes", "chacal", "ChaCAL's Table 2, 1 layer, 32 operations, in distribution: 70.6%."},
};

/// The entries of `all` that are named in a list such as "rope,fal". If the list is empty, the
/// entries that the scale includes.
template <class T>
std::vector<const T*> chosen(std::string_view flag, std::string_view list, Scale scale,
                             std::span<const T> all) {
  if (!list.empty()) return app::chosen(flag, list, all);
  std::vector<const T*> found;
  for (const T& one : all) {
    if (one.from <= scale) found.push_back(&one);
  }
  return found;
}
}  // namespace

std::span<const Mechanism> mechanisms() { return all_mechanisms; }
std::span<const MatrixTask> matrix_tasks() { return all_tasks_of_matrix; }

std::string_view published(const MatrixTask& task, const Mechanism& mechanism) {
  for (const Figure& figure : figures) {
    if (figure.task == task.name && figure.mechanism == mechanism.name) return figure.sentence;
  }
  return {};
}

namespace {

/// A task made from the user's files, with the strings to which the views in `task` refer.
struct OwnTask {
  std::string files, title;
  std::vector<std::string> names;
  std::vector<std::string_view> others;
  MatrixTask task;

  explicit OwnTask(std::string_view word) : files(word) {
    Config config(files);
    config.read_files();
    title = config.task_title();
    const auto all = config.distributions();
    for (std::size_t i = 1; i < all.size(); ++i) names.push_back(all[i].name);
    LONGHAND_CHECK(!names.empty(), files, ": expected test files beside train.jsonl, got none");
    others.assign(names.begin(), names.end());
    task = {.name = title,
            .title = title,
            .kind = "files",
            .length = "",
            .longest = {},
            .options = [](Scale, std::int64_t, bool) { return Settings(); },
            .best = "",
            .others = others,
            .files = files};
  }
  OwnTask(const OwnTask&) = delete;
  OwnTask& operator=(const OwnTask&) = delete;
};

/// The task made from the user's folder or file `word`. Such tasks are kept until the program ends,
/// because cells refer to them.
const MatrixTask* own_task(std::string_view word) {
  static std::list<OwnTask> all;
  const auto known = std::ranges::find(all, word, &OwnTask::files);
  return known != all.end() ? &known->task : &all.emplace_back(word).task;
}

std::vector<const MatrixTask*> chosen_tasks(const RecipeOptions& options) {
  if (options.tasks.empty()) return chosen("tasks", "", options.scale, matrix_tasks());
  std::vector<const MatrixTask*> own;
  std::string built_in;
  bool has_built_in = false;
  for (const std::string_view word : at_commas(options.tasks)) {
    const bool is_known =
        std::ranges::find(matrix_tasks(), word, &MatrixTask::name) != matrix_tasks().end();
    if (!is_known && tasks::names_task_files(word)) {
      own.push_back(as_usage("tasks", [&] { return own_task(word); }));
      const auto same = std::ranges::count(own, own.back()->name, &MatrixTask::name);
      if (same > 1) wrong_usage("--tasks: ", quote(own.back()->name), " is named twice");
    } else {
      built_in += (has_built_in ? "," : "") + std::string(word);
      has_built_in = true;
    }
  }
  if (!has_built_in) return own;
  std::vector<const MatrixTask*> all = app::chosen("tasks", built_in, matrix_tasks());
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace

Choice choose(const RecipeOptions& options) {
  return {chosen("mechanisms", options.mechanisms, options.scale, mechanisms()),
          chosen_tasks(options)};
}

bool Cell::exists() const {
  if (mechanism->settings.find("position_ids=coupled") == std::string_view::npos) return true;
  const std::int32_t any = 0;
  const tasks::TaskKind& kind = tasks::task_kind(task->kind);
  return !kind.make(kind.defaults())->couplings({&any, 1}).empty();
}

std::vector<Cell> cells(const Choice& choice) {
  std::vector<Cell> all;
  for (const MatrixTask* task : choice.tasks) {
    for (const Mechanism* mechanism : choice.mechanisms) {
      const Cell cell{mechanism, task};
      if (cell.exists()) all.push_back(cell);
    }
  }
  return all;
}

}  // namespace longhand::app::matrix
