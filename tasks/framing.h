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

/// The encoding of a sample of a character task as tokens. These five parts follow one another:
///
///   before, prompt, between, answer, after.
///
/// Each character of prompt and answer is one token. By default, the vocabulary consists of the
/// task's characters and a line break. `before` and `between` are then empty, and `after` is the
/// line break.
///
/// For a pretrained model, the tokens are those of a tokenizer. `before` then starts with the chat
/// template's text before the user's message or, without a template, with the tokenizer's begin
/// token. Next comes the instruction, encoded as text, and then the example lines, with one token
/// per character. `between` is the template's text between the two messages, and `after` is the
/// text after the answer. Without a template, `between` is empty and `after` is the tokenizer's end
/// token. If the task's answers have no end, `after` is empty.
class Framing {
 public:
  /// The options that all tasks with a Framing have in common.
  static std::vector<TaskOption> options();

  struct Own {
    std::string_view characters;
    bool ended = true;
    // The texts that replace the value `auto` of the options `instruction` and `examples`.
    std::string_view instruction, examples;
  };
  Framing(const OptionValues& options, const Own& own);
  Framing(const Framing&) = delete;
  Framing& operator=(const Framing&) = delete;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::span<const std::int32_t> before() const { return before_; }
  std::span<const std::int32_t> between() const { return between_; }
  std::span<const std::int32_t> after() const { return after_; }

  /// One token per character. Throws an Error if the task does not use a character.
  std::vector<std::int32_t> tokens_of(std::string_view characters) const;
  std::string characters_of(std::span<const std::int32_t> tokens) const;

 private:
  void add(char character, std::int32_t token);
  void frame_for(const OptionValues& options, const Own& own);

  std::unique_ptr<const Vocabulary> vocabulary_;
  /// Token of each character; -1 if the task does not use the character.
  std::array<std::int32_t, 256> tokens_;
  std::unordered_map<std::int32_t, char> characters_;
  std::vector<std::int32_t> before_, between_, after_;
};

}  // namespace longhand::tasks
