#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "tasks/options.h"
#include "tasks/tally.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// The outputs of a model for each token: `groups` predictions of one of `classes` classes. In a
/// task of text it is a single prediction, the next token of the vocabulary. In other tasks the
/// prediction is a label of the current token, and labels are not tokens of the sequence.
struct Outputs {
  std::int64_t groups = 1;
  std::int64_t classes = 0;
  bool says_next = true;
};

/// One sequence of a task. Output o = i * groups + g is prediction g at token i. If outputs predict
/// the next token, output i predicts token i + 1.
struct Sample {
  static constexpr std::int32_t not_counted = -1;

  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;  // right class of each output, or not_counted
  std::vector<float> weights = {};    // weight of each target; empty: all weights are 1
  std::vector<std::int32_t> positions =
      {};  // position ids of the tokens; empty: consecutive numbers (tasks/position_ids.h)
  std::vector<std::int32_t> asked = {};  // the outputs to be scored, ascending; each has a target
  int head = 0;                          // index of the output head
};

/// The tokens on which an output depends.
struct ReferenceRow {
  std::int32_t row = 0;               // index of the output's token
  std::vector<std::int32_t> columns;  // indices of tokens at or before `row`
};

/// A task with given options: it generates samples and scores answers. Tasks are immutable, so
/// threads may share them.
class Task {
 public:
  virtual ~Task() = default;

  virtual const Vocabulary& vocabulary() const = 0;
  virtual Outputs outputs() const { return {1, vocabulary().size()}; }
  /// Number of output heads. They alternate in training from step to step. The first head is the
  /// task itself; all others are auxiliary tasks.
  virtual int heads() const { return 1; }
  virtual std::string_view head_name(int /*head*/) const { return "task"; }
  virtual std::int64_t longest() const = 0;  // maximum number of tokens of a sample

  /// Tokens that end an answer.
  virtual std::vector<std::int32_t> ends() const { return {}; }

  /// Draws a sample, which depends only on the random stream. `head` is less than heads().
  virtual Sample sample(Rng& rng, int head) const = 0;

  /// Numbers that are equal for tokens that belong together, such as digits of the same place in
  /// two numbers and in their sum. A token's number depends only on the tokens up to it. Empty if
  /// the task defines none.
  virtual std::vector<std::int32_t> couplings(std::span<const std::int32_t>) const { return {}; }
  /// The index of each digit within its number, counted from 1; 0 for other tokens. Empty if the
  /// task has no numbers with the last digit first.
  virtual std::vector<std::int32_t> digit_places(std::span<const std::int32_t>) const { return {}; }
  /// One more than the maximum of couplings() and digit_places() over all samples.
  virtual std::int64_t coupled_positions() const { return longest(); }
  /// Position ids of a sequence that begins with these tokens and has at most `room` tokens. Empty:
  /// consecutive numbers (tasks/position_ids.h).
  virtual std::vector<std::int32_t> positions(std::span<const std::int32_t> /*tokens*/,
                                              std::int64_t /*room*/, std::uint64_t /*seed*/) const {
    return {};
  }
  /// One more than the maximum position id over all samples and offsets.
  virtual std::int64_t position_count() const { return longest(); }

  /// Number of samples of a task with finite data; 0: unlimited.
  virtual std::uint64_t count() const { return 0; }
  /// The sample with index `number`, which is less than count(). If samples are cut from a longer
  /// text, `shift` in [0, 1) is the offset of the first sample; it is equal for all samples of an
  /// epoch.
  virtual Sample sample_at(std::uint64_t number, double shift) const;

  /// Parses a text given by the user, prompt and answer, as a sample. Throws an Error if it is not
  /// one.
  virtual Sample sample_of(std::string_view text) const;

  /// Adds the scores of a model's predictions at sample.asked to the tally. Under teacher forcing,
  /// the model read the sample's own tokens. In decoding (if outputs predict the next token), it
  /// read its own prediction in place of token o + 1 for every o in sample.asked, and the sample's
  /// tokens elsewhere.
  virtual void score(const Sample& sample, std::span<const std::int32_t> said,
                     Tally& tally) const = 0;
  /// The metric by which models are compared.
  virtual std::string_view main_metric() const = 0;
  virtual bool less_is_better() const { return false; }
  /// Number of bytes of text that a sample's targets represent; 0: the task is not text. A text
  /// task also reports loss, perplexity and bits_per_byte.
  virtual std::int64_t target_bytes(const Sample&) const { return 0; }

  /// The reference attention: the tokens that a perfect model must attend to at the scored outputs,
  /// ascending by row.
  virtual std::vector<ReferenceRow> reference(const Sample& sample) const = 0;

  /// Number of tokens of an instruction before every prompt. Attention to them is not counted.
  virtual std::int64_t instruction_tokens() const { return 0; }

  /// The sample's text as prompt and answer. If outputs predict the next token, prompt and answer
  /// concatenated are the whole text.
  virtual std::pair<std::string, std::string> as_text(const Sample& sample) const;
  /// The right answer to a prompt given by the user, for an output head below heads().
  virtual std::string answer(std::string_view prompt, int head) const = 0;
  std::string answer(std::string_view prompt) const { return answer(prompt, 0); }
  /// Checks an answer by the task's definition, independently of the generator. Returns a line that
  /// describes what is wrong, or no value.
  virtual std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                           int head) const = 0;
  std::optional<std::string> check(std::string_view prompt, std::string_view answer) const {
    return check(prompt, answer, 0);
  }

 protected:
  /// Number of entries of `said` that equal the sample's targets.
  static std::int64_t count_right(const Sample& sample, std::span<const std::int32_t> said);
  /// For tasks whose answer is scored: adds `sequences`, the share of completely right answers, and
  /// `tokens`, the share of right tokens.
  static void add_answer(const Sample& sample, std::span<const std::int32_t> said, Tally& tally);
};

/// A test set, defined as a change of the task's options: longer, sparser, larger.
struct Distribution {
  std::string name;
  std::string title;  // title of the column in tables
  std::function<void(OptionValues&)> change;
  bool compared = true;  // the main metric on this test set may determine the best checkpoint
};

using NamedPaths = std::vector<std::pair<std::string, std::filesystem::path>>;

/// A kind of task: a task whose options are not yet set.
struct TaskKind {
  std::string name;
  std::string summary;
  std::vector<TaskOption> options;
  std::vector<Distribution> distributions;  // the first is the training distribution
  std::function<std::unique_ptr<Task>(const OptionValues&)> make_with;
  /// The files from which samples are made, by name, without those of a tokenizer. Null: the task
  /// reads no files.
  std::function<NamedPaths(const OptionValues&)> files = {};

  OptionValues defaults() const { return {name, options}; }
  // Throws an Error if there is no such distribution.
  const Distribution& distribution(std::string_view wanted) const;
  /// Makes the task with these options and the changes of a distribution; by default, the training
  /// task.
  std::unique_ptr<Task> make(OptionValues values, std::string_view distribution = {}) const;
};

/// All kinds of tasks.
std::span<const TaskKind> all_tasks();
const TaskKind& task_kind(std::string_view name);  // throws an Error if there is none

}  // namespace longhand::tasks
