#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tasks/options.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// How a sample that is written in single characters stands in a model's tokens:
///
///   before  prompt  between  answer  after
///
/// Prompt and answer have one token for each character. Of a task's own vocabulary, the characters
/// and a line break, nothing stands before or between, and after is the line break.
///
/// For a pretrained model the tokens are a tokenizer's. By a chat template, before is what comes
/// before the user's words, with what the tokenizer puts around a text; then the instruction,
/// encoded as any text; then lines of examples, one token a character. Between and after are the
/// template's. Without a template before begins with the tokenizer's first token of a text, and
/// after is its end of one. A task whose answers have no end has nothing after.
class Framing {
 public:
  /// The options, for every task of single characters.
  static std::vector<Option> options();

  struct Own {
    std::string_view characters;
    bool ended = true;
    std::string_view instruction, examples;  // where these options are `auto`
  };
  Framing(const OptionValues& options, const Own& own);
  Framing(const Framing&) = delete;
  Framing& operator=(const Framing&) = delete;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::span<const std::int32_t> before() const { return before_; }
  std::span<const std::int32_t> between() const { return between_; }
  std::span<const std::int32_t> after() const { return after_; }

  /// One for each character; refused where it is none of the task's.
  std::vector<std::int32_t> tokens_of(std::string_view characters) const;
  std::string characters_of(std::span<const std::int32_t> tokens) const;

 private:
  void add(char character, std::int32_t token);
  void frame_for(const OptionValues& options, const Own& own);

  std::unique_ptr<const Vocabulary> vocabulary_;
  std::array<std::int32_t, 256> tokens_;  // of characters; -1: none of the task's
  std::unordered_map<std::int32_t, char> characters_;
  std::vector<std::int32_t> before_, between_, after_;
};

}  // namespace longhand::tasks
