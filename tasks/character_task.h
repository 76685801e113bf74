#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tasks/framing.h"
#include "tasks/range.h"
#include "tasks/task.h"

namespace longhand::tasks {

/// A task whose samples consist of characters, with one token per character. A sample is a prompt,
/// its answer and, in most tasks, a line break as the end. The answer and the end are scored. For a
/// pretrained model, a framing adds tokens around prompt and answer (tasks/framing.h). These tokens
/// are not part of a sample's text.
class CharacterTask : public Task {
 public:
  const Vocabulary& vocabulary() const override { return framing_.vocabulary(); }
  std::int64_t longest() const override { return longest_; }
  std::vector<std::int32_t> ends() const override;
  std::string_view main_metric() const override { return "sequences"; }
  Sample sample(Rng& rng, int head) const override;
  Sample sample_of(std::string_view text) const override;
  /// couplings() and digit_places() return empty lists if a tokenizer is used, because they count
  /// characters, and a token of the tokenizer may contain several.
  std::vector<std::int32_t> couplings(std::span<const std::int32_t> tokens) const override;
  std::vector<std::int32_t> digit_places(std::span<const std::int32_t> tokens) const override;
  void score(const Sample& sample, std::span<const std::int32_t> said, Tally& tally) const override;
  std::vector<ReferenceRow> reference(const Sample& sample) const override;
  std::int64_t instruction_tokens() const override { return std::ssize(framing_.before()); }
  std::pair<std::string, std::string> as_text(const Sample& sample) const override;
  std::string answer(std::string_view prompt, int head) const override;
  /// Accepts an answer with or without the line break that ends it.
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int head) const override;

 protected:
  struct Written {
    std::string prompt = {}, answer = {};
  };
  /// If own.ended is true, an end token follows each answer and is scored too. `longest` is the
  /// maximum number of characters of prompt and answer together.
  CharacterTask(const OptionValues& options, const Framing::Own& own, std::int64_t longest);

  virtual Written draw(Rng& rng) const = 0;
  /// Computes the answer to a prompt by the definition of the task. Returns a description of what
  /// is wrong with the prompt, or an empty text if nothing is wrong.
  virtual std::string solve(std::string_view prompt, std::string& answer) const = 0;
  /// Compares an answer to a valid prompt with `right`, the right answer. Returns a description of
  /// what is wrong with the answer, or an empty text if nothing is wrong.
  virtual std::string judge(std::string_view prompt, std::string_view answer,
                            std::string_view right) const;
  /// Index of the answer's first character in the text of a sample; npos if there is no answer.
  virtual std::size_t answer_in(std::string_view sample) const;

  /// coupled() and places_of_digits() compute Task::couplings() and Task::digit_places() of a text,
  /// with one number per character. The text may contain the line break at the end of a sample. The
  /// result is empty if the task does not define such numbers.
  virtual std::vector<std::int32_t> coupled(std::string_view) const { return {}; }
  virtual std::vector<std::int32_t> places_of_digits(std::string_view) const { return {}; }

  /// The character with index `place` depends on the earlier characters with the indices `at`.
  struct Look {
    std::size_t place;
    std::vector<std::size_t> at;  // indices of characters, in ascending order; may be empty
  };
  /// For each character of the answer, the characters that determine it (struct Look). `sample` is
  /// a text with a right answer, which begins at index `begin`.
  virtual std::vector<Look> looks(std::string_view sample, std::size_t begin) const = 0;

 private:
  Sample made_of(const Written& written) const;
  bool has_own_tokens() const { return framing_.before().empty() && framing_.between().empty(); }

  /// The places of the prompt and of the answer among the tokens of a sample.
  struct Places {
    std::size_t prompt, answer;  // indices of the first token of the prompt and of the answer
    std::size_t answer_end;
  };
  Places places_in(const Sample& sample) const;

  std::string name_;
  bool ended_;
  Framing framing_;
  std::int64_t longest_;
};

/// Adds the options of Framing, such as `tokenizer`, to a kind of task.
TaskKind character_kind(TaskKind kind);

/// Functions for numbers that are written with the last digit first.
namespace digits {

/// Draws a number with `count` digits. A number of several digits has no leading zero.
std::string draw(std::int64_t count, Rng& rng);
/// Pads a number to `width` digits with leading zeros. They are at the end of the text, because
/// numbers are written with the last digit first.
std::string padded(std::string number, std::size_t width);
/// The number without leading zeros; "0" for zero.
std::string trimmed(std::string_view number);
// The sum of two numbers. It has at least as many digits as the longer number.
std::string sum(std::string_view a, std::string_view b);
bool less(std::string_view a, std::string_view b);
/// Returns one number per character of a text: for a digit, its index in its number, counted from
/// 1; for an operator, 0. The line break at the end is treated as one more digit if `counted` is
/// true, otherwise as an operator.
std::vector<std::int32_t> places(std::string_view text, bool counted);
/// Splits a text into numbers at the operator `sign`. Returns an empty list unless each part is a
/// number of at most `most` digits.
std::vector<std::string> split(std::string_view text, char sign, std::size_t most);

}  // namespace digits

}  // namespace longhand::tasks
