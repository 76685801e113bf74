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

/// The outputs of a model for each token: `groups` predictions, each of one class out of `classes`.
/// If `says_next`, there is one prediction per token: the next token. Otherwise, predictions are
/// labels of the current token. Labels are not tokens of the sequence.
struct Outputs {
  std::int64_t groups = 1;
  std::int64_t classes = 0;
  bool says_next = true;
};

/// The tokens to which a model must attend for one output.
struct ReferenceRow {
  std::int32_t row = 0;               // index of the token at which the prediction is made
  std::vector<std::int32_t> columns;  // indices of the tokens to attend to, at or before `row`
};

/// One sequence of a task. A model makes `groups` predictions per token (Outputs::groups).
/// Prediction g at token i is output i * groups + g. If outputs predict the next token, output i is
/// the prediction of token i + 1.
struct Sample {
  static constexpr std::int32_t not_counted = -1;

  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;  // right class of each output; not_counted: no target
  std::vector<float> weights = {};    // weight of each target; empty: all weights are 1
  // Position ids of the tokens (tasks/position_ids.h). Empty: the ids are consecutive numbers.
  std::vector<std::int32_t> positions = {};
  std::vector<std::int32_t> asked = {};  // indices of the scored outputs; each has a target
  int head = 0;                          // index of the output head
  /// The reference attention (tokens to which a model must attend), if the file of the sample
  /// states it. Empty if the task computes it.
  std::vector<ReferenceRow> stated = {};
};

/// A task with given options: it generates samples and scores answers. Tasks are immutable, so
/// threads may share them.
class Task {
 public:
  virtual ~Task() = default;

  virtual const Vocabulary& vocabulary() const = 0;
  virtual Outputs outputs() const { return {1, vocabulary().size()}; }
  /// Number of output heads. Each step trains one head; the heads take turns. Head 0 is the task
  /// itself, and all others are auxiliary tasks.
  virtual int heads() const { return 1; }
  virtual std::string_view head_name(int /*head*/) const { return "task"; }
  virtual std::int64_t longest() const = 0;  // maximum number of tokens of a sample

  /// Tokens that end an answer.
  virtual std::vector<std::int32_t> ends() const { return {}; }

  /// Draws a sample for an output head. `head` is less than heads(). The sample depends only on the
  /// head and the random stream.
  virtual Sample sample(Rng& rng, int head) const = 0;

  /// One number per token, equal for tokens that belong together, such as digits of the same place
  /// in two numbers and in their sum. A token's number depends only on the tokens up to this token.
  /// Empty if the task defines no couplings.
  virtual std::vector<std::int32_t> couplings(std::span<const std::int32_t>) const { return {}; }
  /// The index of each digit within its number, counted from 1; 0 for all other tokens. Empty if
  /// the task does not write numbers with the last digit first.
  virtual std::vector<std::int32_t> digit_places(std::span<const std::int32_t>) const { return {}; }
  /// All couplings() and digit_places() of samples are less than this number.
  virtual std::int64_t coupled_positions() const { return longest(); }
  /// Position ids of these tokens, which are the beginning of a sequence of at most `room` tokens.
  /// `seed` selects random ids. Empty: the ids are the tokens' indices. See tasks/position_ids.h.
  virtual std::vector<std::int32_t> positions(std::span<const std::int32_t> /*tokens*/,
                                              std::int64_t /*room*/, std::uint64_t /*seed*/) const {
    return {};
  }
  /// All position ids of samples, including random offsets, are less than this number.
  virtual std::int64_t position_count() const { return longest(); }

  /// Number of samples, if the task has finite data; 0: unlimited.
  virtual std::uint64_t count() const { return 0; }
  /// The sample with index `number`, which is less than count(). If samples are cut from a longer
  /// text, `shift` in [0, 1) determines where the first sample starts. All samples of an epoch have
  /// the same `shift`.
  virtual Sample sample_at(std::uint64_t number, double shift) const;

  /// Parses a text of the user that contains a prompt and its answer. Throws an Error if the text
  /// is not a sample of the task.
  virtual Sample sample_of(std::string_view text) const;

  /// Adds scores to the tally. `said` contains the model's predictions at the outputs o in
  /// sample.asked. Under teacher forcing, the model has read the sample's own tokens. In decoding,
  /// the model has read its own predictions: for every o in sample.asked, token o + 1 is replaced
  /// by the prediction at o. Only tasks that predict the next token can be decoded.
  virtual void score(const Sample& sample, std::span<const std::int32_t> said,
                     Tally& tally) const = 0;
  /// The name of the metric by which models are compared.
  virtual std::string_view main_metric() const = 0;
  /// Number of bytes of text that a sample's targets represent; 0 unless the task is text. For
  /// text, reports also contain the loss, the perplexity and bits_per_byte.
  virtual std::int64_t target_bytes(const Sample&) const { return 0; }

  /// The reference attention: for each scored output, the tokens to which a perfect model must
  /// attend. Rows are in ascending order.
  virtual std::vector<ReferenceRow> reference(const Sample& sample) const = 0;

  /// Number of tokens that precede every prompt, such as those of an instruction. When attention is
  /// compared with reference(), attention to these tokens does not count.
  virtual std::int64_t instruction_tokens() const { return 0; }

  /// The sample as two texts, prompt and answer. If outputs predict the next token, these two texts
  /// together are the whole sample.
  virtual std::pair<std::string, std::string> as_text(const Sample& sample) const;
  /// The right answer to a prompt that the user typed. `head` is an output head, less than heads().
  virtual std::string answer(std::string_view prompt, int head) const = 0;
  std::string answer(std::string_view prompt) const { return answer(prompt, 0); }
  /// Checks an answer by the definition of the task. Does not use code of the generator. Returns a
  /// line that describes what is wrong, or no value if the answer is right.
  virtual std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                           int head) const = 0;
  std::optional<std::string> check(std::string_view prompt, std::string_view answer) const {
    return check(prompt, answer, 0);
  }

 protected:
  /// Number of entries of `said` that equal the sample's targets.
  static std::int64_t count_right(const Sample& sample, std::span<const std::int32_t> said);
  /// Adds `sequences`, the share of answers without a mistake, and `tokens`, the share of right
  /// tokens in answers.
  static void add_answer(const Sample& sample, std::span<const std::int32_t> said, Tally& tally);
};

/// A training or test distribution. It is defined by changes of the task's options.
struct Distribution {
  std::string name;
  std::function<void(OptionValues&)> change;
  /// true: the main metric on this test set helps to select the best checkpoint
  bool compared = true;
};

using NamedPaths = std::vector<std::pair<std::string, std::filesystem::path>>;

/// A kind of task. Setting its options gives a task.
struct TaskKind {
  std::string name;
  std::string summary;
  std::vector<TaskOption> options;
  std::vector<Distribution> distributions;  // the first is the training distribution
  std::function<std::unique_ptr<Task>(const OptionValues&)> make_with;
  /// The files from which samples are made, with their names. Files of a tokenizer are not
  /// included. Null: the task reads no files.
  std::function<NamedPaths(const OptionValues&)> files = {};
  /// Further distributions, which depend on the options and follow `distributions`. Null: there are
  /// none.
  std::function<std::vector<Distribution>(const OptionValues&)> further = {};
  /// Sets options to values that are computed from the files of the task. For example, if the
  /// option for the list of tokens is empty, it is set to the tokens that occur in the files. The
  /// options then describe the model without the files. Null: no option is computed from files.
  std::function<void(OptionValues&)> complete = {};

  OptionValues defaults() const { return {name, options}; }
  /// All distributions of the task with these options. The first is the training distribution.
  std::vector<Distribution> distributions_of(const OptionValues& values) const;
  /// Makes the task with these options, after the named distribution has changed them. Without a
  /// name, the options are not changed.
  std::unique_ptr<Task> make(OptionValues values, std::string_view distribution = {}) const;
};

std::span<const TaskKind> all_tasks();
const TaskKind& task_kind(std::string_view name);  // throws an Error if there is no such kind

/// The task that the user named. If the user named a folder or list of files, `kind` is own_task().
struct NamedTask {
  const TaskKind& kind;
  std::string files = {};  // folder or list that the user named; empty: the user named a kind
};
/// Finds the task that a word of the user names: a kind of task, or a folder or list of JSONL
/// files. Throws an Error if the word names neither.
NamedTask named_task(std::string_view word);

}  // namespace longhand::tasks
