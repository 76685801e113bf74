#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tasks/framing.h"
#include "tasks/range.h"
#include "tasks/task.h"

namespace longhand::tasks {

/// A task whose samples are written in single characters, each a token: a prompt, its answer and,
/// of most, a line break that ends it. The answer is asked, and the end with it. A framing puts
/// them before a pretrained model; the task's text is the same with and without.
class CharacterTask : public Task {
 public:
  const Vocabulary& vocabulary() const override { return framing_.vocabulary(); }
  std::int64_t longest() const override { return longest_; }
  std::vector<std::int32_t> ends() const override;
  std::string_view main_metric() const override { return "sequences"; }
  Sample sample(Rng& rng, int head) const override;
  Sample sample_of(std::string_view text) const override;
  /// None under a tokenizer, where a character is not always the same token.
  std::vector<std::int32_t> couplings(std::span<const std::int32_t> tokens) const override;
  std::vector<std::int32_t> digit_places(std::span<const std::int32_t> tokens) const override;
  void score(const Sample& sample, std::span<const std::int32_t> said, Tally& tally) const override;
  std::vector<ReferenceRow> reference(const Sample& sample) const override;
  std::int64_t instruction_tokens() const override { return std::ssize(framing_.before()); }
  std::pair<std::string, std::string> as_text(const Sample& sample) const override;
  std::string answer(std::string_view prompt, int head) const override;
  /// With or without the end.
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int head) const override;

 protected:
  struct Written {
    std::string prompt = {}, answer = {};
  };
  /// What is asked is the answer, and where it is `ended` the end. `longest`: characters of prompt
  /// and answer.
  CharacterTask(const OptionValues& options, const Framing::Own& own, std::int64_t longest);

  virtual Written draw(Rng& rng) const = 0;
  /// Answers a prompt by the task's definition; says what is wrong with the prompt, or nothing.
  virtual std::string solve(std::string_view prompt, std::string& answer) const = 0;
  /// Says what is wrong with an answer to a sound prompt, of which `right` is the answer.
  virtual std::string judge(std::string_view prompt, std::string_view answer,
                            std::string_view right) const;
  /// Where the answer begins in a whole sample; npos: nowhere.
  virtual std::size_t answer_in(std::string_view sample) const;

  /// What couplings() and digit_places() are of these characters, of which a line break may be one;
  /// or nothing.
  virtual std::vector<std::int32_t> coupled(std::string_view) const { return {}; }
  virtual std::vector<std::int32_t> places_of_digits(std::string_view) const { return {}; }

  /// To predict the character at `place`, what is to be looked at: characters before it.
  struct Look {
    std::size_t place;
    std::vector<std::size_t> at;  // ascending; empty: nothing
  };
  /// Of the characters of a right sample's answer, which begins at `begin`.
  virtual std::vector<Look> looks(std::string_view sample, std::size_t begin) const = 0;

 private:
  Sample made_of(const Written& written) const;
  bool has_own_tokens() const { return framing_.before().empty() && framing_.between().empty(); }

  /// Where a sample's characters stand among its tokens.
  struct Places {
    std::size_t prompt, answer;  // the first tokens
    std::size_t answer_end;
  };
  Places places_in(const Sample& sample) const;

  std::string name_;
  bool ended_;
  Framing framing_;
  std::int64_t longest_;
};

/// A kind of such tasks: its own options, joined by those of the framing.
TaskKind character_kind(TaskKind kind);

/// Numbers as their digits, the last one first.
namespace digits {

/// A number of so many digits, all equally likely; of more than one the first is not 0.
std::string draw(std::int64_t count, Rng& rng);
/// With zeros, which change nothing, up to so many digits.
std::string padded(std::string number, std::size_t width);
/// Without zeros that change nothing; "0" where there are no others.
std::string trimmed(std::string_view number);
std::string sum(std::string_view a, std::string_view b);  // as long as needed, or as the longer
bool less(std::string_view a, std::string_view b);
/// Of each digit its place in its number, 1 being that of the first one after a sign; of signs 0.
/// An end counts as one more digit, or, where it is not `counted`, as a sign.
std::vector<std::int32_t> places(std::string_view text, bool counted);
/// Numbers parted by a sign, of at most so many digits each; empty where they are not that.
std::vector<std::string> split(std::string_view text, char sign, std::size_t most);

}  // namespace digits

}  // namespace longhand::tasks
