#include "apps/run/text_budget.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "apps/run/peak.h"
#include "apps/run/plan.h"
#include "apps/run/run_folder.h"
#include "apps/run/step_time.h"
#include "core/atomic_file.h"
#include "core/folder.h"
#include "core/mapped_file.h"
#include "core/utf8.h"
#include "nn/text/bpe_trainer.h"
#include "tasks/text_settings.h"

namespace longhand::app {
namespace {

namespace fs = std::filesystem;

/// The model and the batches for a number of operations, as counted in nn/models/work.h.
struct TextModel {
  double operations;  // the row is used from this number of operations on
  std::int64_t width, layers;
  std::int64_t length;  // predicted tokens of a sample
  std::int64_t tokens;  // predicted tokens of a batch
  double rate;          // peak learning rate of Muon
};

/// A training with N parameters and D tokens needs about 6 N D operations. The thresholds are
/// chosen so that D / N is between 3 and 15. Compute-optimal language models have D / N = 20
/// (arXiv:2203.15556), but a text of a few megabytes is then repeated so often that a larger model
/// is better.
constexpr std::array table{
    TextModel{0, 64, 2, 128, 1024, 1e-2},       TextModel{3e12, 96, 3, 128, 2048, 1e-2},
    TextModel{1e13, 128, 4, 128, 4096, 8e-3},   TextModel{7.5e13, 192, 4, 256, 4096, 7e-3},
    TextModel{4e14, 256, 6, 256, 8192, 5e-3},   TextModel{3e15, 384, 8, 256, 16384, 4e-3},
    TextModel{3e16, 512, 12, 512, 32768, 3e-3}, TextModel{1.5e17, 768, 12, 512, 65536, 2e-3},
};

const TextModel& row_for(double operations) {
  const auto* const after = std::ranges::upper_bound(table, operations, {}, &TextModel::operations);
  return after == table.begin() ? table.front() : *std::prev(after);
}

/// AdamW's learning rate as a share of Muon's.
constexpr double adam_share = 0.3;

/// An estimate of the speed of training steps, as a share of the speed of a large matrix product.
constexpr double share_of_peak = 0.5;

/// Maximum number of evaluations during a training, and the share of the time that they may take if
/// there are several.
constexpr double most_evaluations = 4, share_for_evaluations = 0.1;

/// Share of the planned time that is left for steps that take longer than the measured ones.
constexpr double slack = 0.05;

/// Share of the whole time that is kept for the checkpoint, the samples and the report.
constexpr double share_for_saving = 0.02;

/// Maximum number of bytes on which a tokenizer is trained.
constexpr std::int64_t tokenizer_bytes = 16 << 20;

/// Minimum number of steps for which a plan is made.
constexpr double fewest_steps = 20;

/// Maximum number of epochs. More epochs would mostly memorize the text.
constexpr double most_epochs = 40;

std::string rounded(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", x);
  return buffer;
}

/// Sets a setting unless a file or a flag has set it.
void choose(Config& config, std::string_view key, std::string value) {
  if (config.is_default(key)) config.set(key, std::move(value), "--minutes");
}
void choose(Config& config, std::string_view key, std::int64_t value) {
  choose(config, key, std::to_string(value));
}

/// Number of heads for a model of this width: the heads are 32 wide if possible.
std::int64_t heads_for(std::int64_t width) {
  for (const std::int64_t size : {32, 48, 40, 64, 16, 20, 24, 8, 4, 2}) {
    if (width % size == 0) return width / size;
  }
  return 1;
}

/// The beginning of the text that is trained on, for the tokenizer. Empty if the text is not UTF-8.
std::string beginning_of(const fs::path& file, std::int64_t bytes) {
  const MappedFile mapped(file);
  const auto count = static_cast<std::size_t>(std::min(bytes, tokenizer_bytes));
  LONGHAND_CHECK(count <= mapped.bytes().size(), file.string(), ": cannot read ", count, " bytes");
  std::string text(reinterpret_cast<const char*>(mapped.bytes().data()), count);
  // The last character may be incomplete, so up to three bytes are removed.
  for (int removed = 0; removed <= 3; ++removed, text.pop_back()) {
    if (find_broken_utf8(text) == std::string::npos) return text;
  }
  return {};
}

/// Removes the tokenizer and the empty folder of a run that cannot be planned.
class TokenizerGuard {
 public:
  explicit TokenizerGuard(const fs::path& run)
      : run_(run), keep_(fs::exists(RunFolder::tokenizer(run))) {}
  ~TokenizerGuard() {
    if (keep_) return;
    std::error_code ignored;
    fs::remove_all(RunFolder::tokenizer(run_), ignored);
    fs::remove(run_, ignored);  // does nothing if the folder has other contents
  }
  TokenizerGuard(const TokenizerGuard&) = delete;
  TokenizerGuard& operator=(const TokenizerGuard&) = delete;
  void keep() { keep_ = true; }

 private:
  fs::path run_;
  bool keep_;
};

/// Trains a tokenizer on the beginning of the text and writes it to the folder of the run. Sets it
/// in the configuration. Returns a line that describes the tokens.
std::string choose_tokenizer(Config& config, const fs::path& file, const fs::path& run,
                             const TextBudget& budget) {
  const std::string sample = beginning_of(file, budget.bytes);
  if (sample.empty()) return "tokens: bytes, because the text is not valid UTF-8";
  const nn::TrainedBpe trained =
      nn::train_bpe(sample, {.size = static_cast<std::size_t>(vocabulary_for(budget))});
  const fs::path to = RunFolder::tokenizer(run);
  const Folder folder = Folder::make(run).make_folder(to.filename());
  write_atomically(folder, "tokenizer.json", nn::tokenizer_json(trained).dump());
  choose(config, "task.tokenizer", to.string());
  return text("tokens: ", trained.tokens.size(),
              " parts of words, which a tokenizer learned from the text, because a model of bytes "
              "needs more time");
}

/// The sizes of a training that depend on its settings.
struct StepSize {
  double operations;  // operations of a step
  double epochs;      // share of the training text that a step reads
};

StepSize step_size(Config config) {
  config.set("training.steps", "1");
  const double operations = training_work(config).operations;
  const auto samples = static_cast<double>(config.learned()->count());
  const TrainingSettings settings = config.training();
  const double length = static_cast<double>(config.task_values().integer("length", 1, 1 << 20));
  const double batch = settings.batch_tokens > 0
                           ? static_cast<double>(settings.batch_tokens) / length
                           : static_cast<double>(settings.batch);
  return {operations, batch / samples};
}

/// Seconds of one evaluation, which scores samples of the training text and of the held-out text. A
/// forward pass needs a third of the operations of a training step.
double evaluation_seconds(const Config& config, double seconds_per_step) {
  const TrainingSettings settings = config.training();
  double samples = 0;
  for (const tasks::Distribution& distribution : config.distributions()) {
    const std::uint64_t count = config.task(distribution.name)->count();
    samples +=
        static_cast<double>(std::min(count, static_cast<std::uint64_t>(settings.evaluate_samples)));
  }
  return samples / static_cast<double>(settings.batch) * seconds_per_step / 3;
}

/// Checks that the text can be used, and returns the number of bytes to train on.
std::int64_t trained_bytes(const tasks::TextSettings& source) {
  if (source.text.empty()) wrong_usage("--minutes: expected a text (--text FILE)");
  LONGHAND_CHECK(!source.of_records, source.text.string(),
                 ": expected a plain text for --minutes, got records with prompts and answers");
  std::error_code error;
  const auto size = static_cast<double>(fs::file_size(source.text, error));
  LONGHAND_CHECK(!error, source.text.string(), ": cannot be read: ", error.message());
  const auto bytes =
      static_cast<std::int64_t>(source.another_file() ? size : size * (1 - source.held_out));
  LONGHAND_CHECK(bytes >= shortest_text, source.text.string(), ": expected at least ",
                 shortest_text, " bytes to train on for --minutes, got ", bytes);
  return bytes;
}

/// The number of steps that fit into the time, and a line that describes them.
struct PlannedSteps {
  std::int64_t steps;
  std::string line;
};

PlannedSteps steps_for(double seconds, double each, double epochs) {
  const double fitting = std::floor(seconds * (1 - slack) / each);
  if (fitting < fewest_steps) {
    wrong_usage("--minutes: expected time for at least ", fewest_steps, " training steps of ",
                rounded(each), " s, got time for ", std::max(0.0, fitting),
                "; use more minutes or a smaller model");
  }
  const double useful = std::max(fewest_steps, std::floor(most_epochs / epochs));
  const auto steps = static_cast<std::int64_t>(std::min({fitting, useful, 1e9}));
  const double times = static_cast<double>(steps) * epochs;
  std::string line = text("steps: ", steps, ", because a step takes ", rounded(each),
                          " s; they read the text ", rounded(times), " times");
  if (useful < fitting) {
    line = text("steps: ", steps, ", which read the text ", most_epochs, " times in ",
                time_in_words(static_cast<double>(steps) * each),
                "; more steps would memorize this short text");
  }
  return {steps, std::move(line)};
}

/// Sets the model, the batch size and the optimizer to those of a row of the table.
void choose_row(Config& config, const TextModel& row) {
  // These settings give the form of Llama, which `longhand export` can write for other programs.
  for (const auto& [key, value] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"model.norm", "rms"},
           {"model.order", "sequential"},
           {"model.activation", "silu"},
           {"model.gated", "1"},
           {"model.feed_forward_bias", "0"},
           {"model.attention_bias", "0"},
           {"model.out_bias", "0"},
           {"model.tied", "1"},
           {"training.evaluate_minutes", "0"},
           {"training.beta2", "0.99"}}) {
    choose(config, key, std::string(value));
  }
  choose(config, "model.width", row.width);
  choose(config, "model.layers", row.layers);
  const std::int64_t width = config.model_settings().decoder.width;
  choose(config, "model.heads", text("softmax:", heads_for(width)));
  // A gated feed-forward network has three matrices. With 8/3 of the width, they have as many
  // parameters as the two matrices of a network without a gate that is 4 times as wide.
  choose(config, "model.inner", (width * 8 / 3 + 31) / 32 * 32);
  choose(config, "task.length", row.length);
  const std::int64_t length = config.task_values().integer("length", 1, 1 << 20);
  if (config.is_default("training.batch_tokens")) {
    choose(config, "training.batch", std::max<std::int64_t>(1, row.tokens / length));
  }
  // Muon reaches the same loss in fewer steps than AdamW. Muon has no moments in bf16.
  choose(config, "training.optimizer", config.text("training.moments") == "bf16" ? "adam" : "muon");
  choose(config, "training.rate",
         rounded(config.text("training.optimizer") == "muon" ? row.rate : adam_share * row.rate));
}

}  // namespace

std::int64_t vocabulary_for(const TextBudget& budget) {
  if (budget.bytes < 200'000) return 512;
  return budget.operations() < 4e14 || budget.bytes < 5'000'000 ? 1024 : 4096;
}

std::vector<std::string> choose_text_settings(Config& config, const TextBudget& budget) {
  // A short text is read most_epochs times at most, so the model for it is smaller.
  const TextModel* row = &row_for(budget.operations());
  Config chosen = config;
  StepSize size;
  for (;; --row) {
    chosen = config;
    choose_row(chosen, *row);
    size = step_size(chosen);
    const double useful = most_epochs / size.epochs * size.operations;
    if (row == table.begin() || useful >= row->operations) break;
  }
  config = std::move(chosen);
  const double epochs = budget.operations() / size.operations * size.epochs;
  if (epochs > 10) choose(config, "model.dropout", epochs > 20 ? "0.2" : "0.1");

  const auto value = [&](const char* key) { return config.text(key); };
  return {text("model: width ", value("model.width"), ", ", value("model.layers"),
               " layers, heads ", value("model.heads"), ", ", training_work(config).parameters,
               " parameters, for about ", rounded(budget.operations()), " operations in this time"),
          text("data: ", value("training.batch"), " samples of ", value("task.length"),
               " tokens per step; about ", rounded(std::min(epochs, most_epochs)),
               " epochs, so the dropout rate is ", value("model.dropout")),
          text("optimizer: ", value("training.optimizer"), " with a peak learning rate of ",
               value("training.rate"), ", which falls to 0 along a ", value("training.schedule"),
               " curve at the end")};
}

Machine this_machine(const ComputeSettings& compute, double calibration) {
  using Clock = std::chrono::steady_clock;
  return {
      .elapsed =
          [start = Clock::now()] {
            return std::chrono::duration<double>(Clock::now() - start).count();
          },
      .speed =
          [compute] {
            const double peak = measure_peak(*compute.make());
            return share_of_peak * (peak > 0 ? peak : 1e9);
          },
      .seconds_per_step =
          [calibration](const Config& config) { return seconds_per_step(config, calibration); }};
}

TextPlan plan_text_training(const Config& config, const fs::path& run, double seconds,
                            const Machine& machine,
                            const std::function<void(const std::string&)>& say) {
  const tasks::TextSettings source(config.task_values());
  TextBudget budget{.seconds = seconds, .bytes = trained_bytes(source)};
  budget.speed = machine.speed();
  TokenizerGuard tokenizer(run);
  Config with_tokens = config;
  if (config.is_default("task.tokenizer")) {
    say(choose_tokenizer(with_tokens, source.text, run, budget));
  }
  TextPlan plan{.config = with_tokens};
  std::vector<std::string> lines = choose_text_settings(plan.config, budget);
  plan.config.check();
  double each = machine.seconds_per_step(plan.config);
  // The first choice depends on an estimate of the speed. If the measured speed belongs to another
  // row of the table, the settings are chosen again.
  const double operations = budget.operations();
  budget.speed = step_size(plan.config).operations / each;
  if (&row_for(budget.operations()) != &row_for(operations)) {
    plan.config = with_tokens;
    lines = choose_text_settings(plan.config, budget);
    plan.config.check();
    each = machine.seconds_per_step(plan.config);
  }
  for (const std::string& line : lines) say(line);

  const double evaluation = evaluation_seconds(plan.config, each);
  const double evaluations =
      std::clamp(std::floor(share_for_evaluations * seconds / evaluation), 1.0, most_evaluations);
  plan.training_ends = seconds * (1 - share_for_saving) - evaluation;
  const double left = plan.training_ends - machine.elapsed() - (evaluations - 1) * evaluation;
  const PlannedSteps planned = steps_for(left, each, step_size(plan.config).epochs);
  choose(plan.config, "training.steps", planned.steps);
  choose(plan.config, "training.evaluate_every",
         static_cast<std::int64_t>(std::ceil(static_cast<double>(planned.steps) / evaluations)));
  say(planned.line);
  tokenizer.keep();
  return plan;
}

}  // namespace longhand::app
