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

/// How a sample of single characters is written in a model's tokens:
///
///   before  prompt  between  answer  after
///
/// Prompt and answer have one token per character. With a task's own vocabulary, the characters and
/// a line break, before and between are empty, and after is the line break.
///
/// For a pretrained model the tokens are those of a tokenizer. With a chat template, before is what
/// precedes the user's message, with the tokens that the tokenizer puts around a text; then the
/// instruction, encoded as text; then example lines, one token per character. Between and after
/// come from the template. Without a template, before starts with the tokenizer's first token of a
/// text, and after is its last token. If answers of the task have no end, after is empty.
class Framing {
 public:
  /// The options of every task of single characters.
  static std::vector<Option> options();

  struct Own {
    std::string_view characters;
    bool ended = true;
    std::string_view instruction, examples;  // used if these options are `auto`
  };
  Framing(const OptionValues& options, const Own& own);
  Framing(const Framing&) = delete;
  Framing& operator=(const Framing&) = delete;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::span<const std::int32_t> before() const { return before_; }
  std::span<const std::int32_t> between() const { return between_; }
  std::span<const std::int32_t> after() const { return after_; }

  /// One token per character. Throws an Error for a character that the task lacks.
  std::vector<std::int32_t> tokens_of(std::string_view characters) const;
  std::string characters_of(std::span<const std::int32_t> tokens) const;

 private:
  void add(char character, std::int32_t token);
  void frame_for(const OptionValues& options, const Own& own);

  std::unique_ptr<const Vocabulary> vocabulary_;
  std::array<std::int32_t, 256> tokens_;  // token of each character; -1 if the task lacks it
  std::unordered_map<std::int32_t, char> characters_;
  std::vector<std::int32_t> before_, between_, after_;
};

}  // namespace longhand::tasks
