#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tasks/framing.h"
#include "tasks/range.h"
#include "tasks/task.h"

namespace longhand::tasks {

/// A task whose samples are single characters, each a token: a prompt, its answer and, in most
/// tasks, a line break at the end. The answer and the end are asked. A framing embeds them for a
/// pretrained model; the task's text is the same with and without it.
class CharacterTask : public Task {
 public:
  const Vocabulary& vocabulary() const override { return framing_.vocabulary(); }
  std::int64_t longest() const override { return longest_; }
  std::vector<std::int32_t> ends() const override;
  std::string_view main_metric() const override { return "sequences"; }
  Sample sample(Rng& rng, int head) const override;
  Sample sample_of(std::string_view text) const override;
  /// Empty with a tokenizer, because a character is not always the same token.
  std::vector<std::int32_t> couplings(std::span<const std::int32_t> tokens) const override;
  std::vector<std::int32_t> digit_places(std::span<const std::int32_t> tokens) const override;
  void score(const Sample& sample, std::span<const std::int32_t> said, Tally& tally) const override;
  std::vector<ReferenceRow> reference(const Sample& sample) const override;
  std::int64_t instruction_tokens() const override { return std::ssize(framing_.before()); }
  std::pair<std::string, std::string> as_text(const Sample& sample) const override;
  std::string answer(std::string_view prompt, int head) const override;
  /// Accepts answers with or without the end.
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int head) const override;

 protected:
  struct Written {
    std::string prompt = {}, answer = {};
  };
  /// The answer is asked, and the end if `ended`. `longest`: maximum characters of prompt and
  /// answer.
  CharacterTask(const OptionValues& options, const Framing::Own& own, std::int64_t longest);

  virtual Written draw(Rng& rng) const = 0;
  /// Answers a prompt by the task's definition. Returns what is wrong with the prompt, or nothing.
  virtual std::string solve(std::string_view prompt, std::string& answer) const = 0;
  /// Judges an answer to a valid prompt whose right answer is `right`. Returns what is wrong with
  /// the answer, or nothing.
  virtual std::string judge(std::string_view prompt, std::string_view answer,
                            std::string_view right) const;
  /// Start of the answer in a whole sample; npos if there is none.
  virtual std::size_t answer_in(std::string_view sample) const;

  /// couplings() and digit_places() of these characters, which may include a line break; empty if
  /// the task defines none.
  virtual std::vector<std::int32_t> coupled(std::string_view) const { return {}; }
  virtual std::vector<std::int32_t> places_of_digits(std::string_view) const { return {}; }

  /// The earlier characters on which the character at `place` depends.
  struct Look {
    std::size_t place;
    std::vector<std::size_t> at;  // in ascending order; may be empty
  };
  /// The dependencies of each character of a right sample's answer, which begins at `begin`.
  virtual std::vector<Look> looks(std::string_view sample, std::size_t begin) const = 0;

 private:
  Sample made_of(const Written& written) const;
  bool has_own_tokens() const { return framing_.before().empty() && framing_.between().empty(); }

  /// Positions of a sample's characters among its tokens.
  struct Places {
    std::size_t prompt, answer;  // position of the first token of each part
    std::size_t answer_end;
  };
  Places places_in(const Sample& sample) const;

  std::string name_;
  bool ended_;
  Framing framing_;
  std::int64_t longest_;
};

/// A kind of such tasks. Adds the options of the framing to the task's own.
TaskKind character_kind(TaskKind kind);

/// Numbers as digits, the last digit first.
namespace digits {

/// A uniform number with this many digits; if it has more than one, the first is not 0.
std::string draw(std::int64_t count, Rng& rng);
/// The number padded with zeros to this many digits.
std::string padded(std::string number, std::size_t width);
/// The number without redundant zeros; at least "0".
std::string trimmed(std::string_view number);
// as many digits as needed, at least those of the longer number
std::string sum(std::string_view a, std::string_view b);
bool less(std::string_view a, std::string_view b);
/// The place of each digit in its number, 1 for the first digit after an operator; 0 for operators.
/// An end counts as one more digit, or as an operator if not `counted`.
std::vector<std::int32_t> places(std::string_view text, bool counted);
/// Numbers separated by an operator, with a maximum of digits each; empty if the text is anything
/// else.
std::vector<std::string> split(std::string_view text, char sign, std::size_t most);

}  // namespace digits

}  // namespace longhand::tasks
