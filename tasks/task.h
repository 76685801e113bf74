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

/// The predictions of a model at each token: `groups` choices among `classes` each. In a task of
/// text that is one choice among the vocabulary, the next token. In other tasks it labels the
/// current token, and labels are not tokens of the sequence.
struct Outputs {
  std::int64_t groups = 1;
  std::int64_t classes = 0;
  bool says_next = true;
};

/// One sequence of a task. Output o = i * groups + g is choice g at token i. If outputs predict the
/// next token, output i predicts token i + 1.
struct Sample {
  static constexpr std::int32_t not_counted = -1;

  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;  // per output: the right class, or not_counted
  std::vector<float> weights = {};    // parallel to targets; empty: all 1
  std::vector<std::int32_t> positions =
      {};  // positions of the tokens, unless they are places (tasks/position_ids.h)
  std::vector<std::int32_t> asked = {};  // the scored outputs, ascending; all have a target
  int head = 0;                          // the output head
};

/// The tokens on which an output depends.
struct ReferenceRow {
  std::int32_t row = 0;               // the token of the output
  std::vector<std::int32_t> columns;  // tokens at or before `row`
};

/// A task with given options: it generates samples and scores answers. Tasks are immutable, so
/// threads may share them.
class Task {
 public:
  virtual ~Task() = default;

  virtual const Vocabulary& vocabulary() const = 0;
  virtual Outputs outputs() const { return {1, vocabulary().size()}; }
  /// Output heads, which take turns in training, one per step. The first is the task itself; others
  /// are auxiliary.
  virtual int heads() const { return 1; }
  virtual std::string_view head_name(int /*head*/) const { return "task"; }
  virtual std::int64_t longest() const = 0;  // maximum tokens of a sample

  /// Tokens that end an answer.
  virtual std::vector<std::int32_t> ends() const { return {}; }

  /// Draws a sample, which depends only on the stream; `head` is below heads().
  virtual Sample sample(Rng& rng, int head) const = 0;

  /// Numbers shared by tokens that belong together, such as digits of the same place in two numbers
  /// and in their sum. Each depends only on the tokens up to its own. Empty: the task defines none.
  virtual std::vector<std::int32_t> couplings(std::span<const std::int32_t>) const { return {}; }
  /// The place of each digit in its number, from 1 on; 0 for other tokens. Empty: the task has no
  /// numbers with the last digit first.
  virtual std::vector<std::int32_t> digit_places(std::span<const std::int32_t>) const { return {}; }
  /// One more than the maximum of couplings() and digit_places() over all samples.
  virtual std::int64_t coupled_positions() const { return longest(); }
  /// Positions of a sequence that begins with these tokens and has at most `room` tokens, if they
  /// are not places (tasks/position_ids.h); otherwise empty.
  virtual std::vector<std::int32_t> positions(std::span<const std::int32_t> /*tokens*/,
                                              std::int64_t /*room*/, std::uint64_t /*seed*/) const {
    return {};
  }
  /// One more than the maximum position over all samples and offsets.
  virtual std::int64_t position_count() const { return longest(); }

  /// Number of samples of a task with finite data; 0: samples are drawn without end.
  virtual std::uint64_t count() const { return 0; }
  /// Sample `number`, which is below count(). If samples are cut from a longer text, `shift` in [0,
  /// 1) is the offset of the first one, equal for all samples of an epoch.
  virtual Sample sample_at(std::uint64_t number, double shift) const;

  /// Parses a text from outside, prompt and answer, as a sample. Throws an Error if it is not one.
  virtual Sample sample_of(std::string_view text) const;

  /// Adds the score of a model's predictions at sample.asked to the tally. Under teacher forcing,
  /// the model read the sample's own tokens. In decoding (if outputs predict the next token), it
  /// read its own prediction in place of token o + 1 for every asked output o, and the sample's
  /// tokens elsewhere.
  virtual void score(const Sample& sample, std::span<const std::int32_t> said,
                     Tally& tally) const = 0;
  /// The metric by which models are compared.
  virtual std::string_view main_metric() const = 0;
  virtual bool less_is_better() const { return false; }
  /// Bytes of text that a sample's targets represent; 0: the task is not text. A task of text also
  /// reports loss, perplexity and bits_per_byte.
  virtual std::int64_t target_bytes(const Sample&) const { return 0; }

  /// The attention that a perfect model needs at the asked outputs, ascending by row.
  virtual std::vector<ReferenceRow> reference(const Sample& sample) const = 0;

  /// Tokens of an instruction before every prompt; attention to them is not counted.
  virtual std::int64_t instruction_tokens() const { return 0; }

  /// The sample's text as prompt and answer. If outputs predict the next token, both concatenated
  /// are the whole text.
  virtual std::pair<std::string, std::string> as_text(const Sample& sample) const;
  /// The right answer to a prompt from outside, for an output head below heads().
  virtual std::string answer(std::string_view prompt, int head) const = 0;
  std::string answer(std::string_view prompt) const { return answer(prompt, 0); }
  /// Checks an answer from outside by the task's definition, independently of the generator.
  /// Returns one line that says what is wrong, or nothing.
  virtual std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                           int head) const = 0;
  std::optional<std::string> check(std::string_view prompt, std::string_view answer) const {
    return check(prompt, answer, 0);
  }

 protected:
  /// The number of entries of `said` that equal the sample's targets.
  static std::int64_t count_right(const Sample& sample, std::span<const std::int32_t> said);
  /// For tasks in which the answer is asked: `sequences`, completely right answers, and `tokens`,
  /// the share of right tokens.
  static void add_answer(const Sample& sample, std::span<const std::int32_t> said, Tally& tally);
};

/// A change of the options that defines a test set: longer, sparser, larger.
struct Distribution {
  std::string name;
  std::string title;  // the column's title in tables
  std::function<void(OptionValues&)> change;
  bool compared = true;  // its main metric may choose the best checkpoint
};

using NamedPaths = std::vector<std::pair<std::string, std::filesystem::path>>;

/// A task before its options are set.
struct TaskKind {
  std::string name;
  std::string summary;
  std::vector<Option> options;
  std::vector<Distribution> distributions;  // the first is the training distribution
  std::function<std::unique_ptr<Task>(const OptionValues&)> make_with;
  /// The files that the samples are made of, by name, without those of a tokenizer. Unset: the task
  /// reads no files.
  std::function<NamedPaths(const OptionValues&)> files = {};

  OptionValues defaults() const { return {name, options}; }
  // throws an Error if there is none
  const Distribution& distribution(std::string_view wanted) const;
  /// The task with these options and the changes of a distribution; without one, the training task.
  std::unique_ptr<Task> make(OptionValues values, std::string_view distribution = {}) const;
};

/// All tasks.
std::span<const TaskKind> all_tasks();
const TaskKind& task_kind(std::string_view name);  // throws an Error if there is none

}  // namespace longhand::tasks
