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

/// What a model says at each token: `groups` choices, each among `classes`. In a task of text that
/// is one choice among the vocabulary, the next token; in others it labels the token it stands at,
/// and nothing that was said stands among the tokens.
struct Outputs {
  std::int64_t groups = 1;
  std::int64_t classes = 0;
  bool says_next = true;
};

/// One sequence of a task. Output o = i * groups + g is choice g at token i; where outputs say the
/// next token, output i says token i + 1.
struct Sample {
  static constexpr std::int32_t not_counted = -1;

  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;  // of each output: what it is to say, or not_counted
  std::vector<float> weights = {};    // beside targets; empty: all 1
  std::vector<std::int32_t> positions =
      {};  // of the tokens, where they are not their places (tasks/position_ids.h)
  std::vector<std::int32_t> asked =
      {};        // the outputs that are scored, ascending, all with a target
  int head = 0;  // the output head that answers
};

/// Where an output finds what it needs.
struct ReferenceRow {
  std::int32_t row = 0;               // the token at which the output stands
  std::vector<std::int32_t> columns;  // tokens at or before it
};

/// A task under given options: a source of samples, and the judge of answers to them.
/// Nothing here changes after it was made, so threads may share it.
class Task {
 public:
  virtual ~Task() = default;

  virtual const Vocabulary& vocabulary() const = 0;
  virtual Outputs outputs() const { return {1, vocabulary().size()}; }
  /// Heads take turns in training, one a step; the first is the task itself, others are helpers.
  virtual int heads() const { return 1; }
  virtual std::string_view head_name(int /*head*/) const { return "task"; }
  virtual std::int64_t longest() const = 0;  // tokens a sample can have

  /// Tokens after which there is no more to be said.
  virtual std::vector<std::int32_t> ends() const { return {}; }

  /// Drawn from the stream alone; `head` below heads().
  virtual Sample sample(Rng& rng, int head) const = 0;

  /// Numbers by which tokens of a sequence belong together, such as digits of the same place in two
  /// numbers and in their sum: each follows from the tokens up to its own. Empty: the task names
  /// none.
  virtual std::vector<std::int32_t> couplings(std::span<const std::int32_t>) const { return {}; }
  /// Of each digit its place in its number, from 1 on; 0 of what is no digit. Empty: the task has
  /// no numbers whose last digit comes first.
  virtual std::vector<std::int32_t> digit_places(std::span<const std::int32_t>) const { return {}; }
  /// Of all samples one more than the largest of either.
  virtual std::int64_t coupled_positions() const { return longest(); }
  /// Positions of a sequence that begins with these tokens and has up to `room` of them, where they
  /// are not places (tasks/position_ids.h); else none.
  virtual std::vector<std::int32_t> positions(std::span<const std::int32_t> /*tokens*/,
                                              std::int64_t /*room*/, std::uint64_t /*seed*/) const {
    return {};
  }
  /// Of all samples one more than the largest position, wherever that is drawn to begin.
  virtual std::int64_t position_count() const { return longest(); }

  /// A task of finite data has its samples numbered, so many of them; 0: it draws without end.
  virtual std::uint64_t count() const { return 0; }
  /// Sample `number` below count(). Where samples are cut out of something longer, `shift` in
  /// [0, 1) says where the first one begins; it is the same for all samples of an epoch.
  virtual Sample sample_at(std::uint64_t number, double shift) const;

  /// The sample that an outside text is, prompt and answer; refused where it is none.
  virtual Sample sample_of(std::string_view text) const;

  /// Adds to the tally what a model said at sample.asked. Under teacher forcing the model saw the
  /// sample's own tokens. In decoding (outputs say the next token) it saw, in place of token o + 1
  /// for every asked output o, what it had said there, and the sample's tokens elsewhere.
  virtual void score(const Sample& sample, std::span<const std::int32_t> said,
                     Tally& tally) const = 0;
  /// The metric by which models are compared.
  virtual std::string_view main_metric() const = 0;
  virtual bool less_is_better() const { return false; }
  /// Bytes of the text that a sample's targets stand for; 0: the task is not about text. Where it
  /// is, its metrics are joined by those of the loss: loss, perplexity and bits_per_byte.
  virtual std::int64_t target_bytes(const Sample&) const { return 0; }

  /// The attention a perfect model would need at the asked outputs, ascending by row.
  virtual std::vector<ReferenceRow> reference(const Sample& sample) const = 0;

  /// Tokens before every prompt, which only say what is wanted: attention to them is not counted.
  virtual std::int64_t instruction_tokens() const { return 0; }

  /// The sample's text, cut in two: what is given and what is to be answered. Where outputs say the
  /// next token they are the whole, one after the other.
  virtual std::pair<std::string, std::string> as_text(const Sample& sample) const;
  /// The right answer to an outside prompt, put to an output head below heads().
  virtual std::string answer(std::string_view prompt, int head) const = 0;
  std::string answer(std::string_view prompt) const { return answer(prompt, 0); }
  /// Judges an outside answer by the task's definition, not by the generator: what is wrong, in one
  /// line, or nothing.
  virtual std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                           int head) const = 0;
  std::optional<std::string> check(std::string_view prompt, std::string_view answer) const {
    return check(prompt, answer, 0);
  }

 protected:
  /// How many entries of `said` are the sample's own targets.
  static std::int64_t count_right(const Sample& sample, std::span<const std::int32_t> said);
  /// For tasks whose answer is what is asked: `sequences`, answers right as a whole, and `tokens`,
  /// the share of right tokens.
  static void add_answer(const Sample& sample, std::span<const std::int32_t> said, Tally& tally);
};

/// A change of the options that makes a test set: longer, sparser, larger.
struct Distribution {
  std::string name;
  std::string title;  // as a table's column has it
  std::function<void(OptionValues&)> change;
  bool compared = true;  // by its main metric a checkpoint may be the best
};

using NamedPaths = std::vector<std::pair<std::string, std::filesystem::path>>;

/// A task before its options are known.
struct TaskKind {
  std::string name;
  std::string summary;
  std::vector<Option> options;
  std::vector<Distribution> distributions;  // the first is that of training
  std::function<std::unique_ptr<Task>(const OptionValues&)> make_with;
  /// The files that the samples are made of, by name, but not a tokenizer's. None: there are none.
  std::function<NamedPaths(const OptionValues&)> files = {};

  OptionValues defaults() const { return {name, options}; }
  const Distribution& distribution(std::string_view wanted) const;  // refused where there is none
  /// The task under these options, changed to a distribution; none: the training one.
  std::unique_ptr<Task> make(OptionValues values, std::string_view distribution = {}) const;
};

/// Every task there is.
std::span<const TaskKind> all_tasks();
const TaskKind& task_kind(std::string_view name);  // refused where there is none

}  // namespace longhand::tasks
