#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "nn/models/decode.h"
#include "tasks/task.h"
#include "tasks/vocabulary.h"

namespace longhand::app {

/// What a model says after a prompt, token by token: its text so far, and how much was shown.
class Continuation {
 public:
  Continuation(const tasks::Vocabulary& vocabulary, std::vector<std::int32_t> prompt)
      : vocabulary_(vocabulary), prompt_(std::move(prompt)) {}

  const std::vector<std::int32_t>& prompt() const { return prompt_; }
  const std::string& text() const { return text_; }
  const std::vector<nn::Choice>& choices() const { return choices_; }

  void add(const nn::Choice& choice, bool is_shown);
  /// Whether the text holds `end`; it is cut there. An empty one is never found.
  bool cut_at(const std::string& end);
  /// What may be shown now of what was not shown before: whole characters, and nothing that may
  /// yet turn out to be the beginning of `end`.
  std::string_view fresh(const std::string& end, bool is_last);

 private:
  bool is_whole(std::size_t until) const;

  const tasks::Vocabulary& vocabulary_;
  std::vector<std::int32_t> prompt_;
  std::string text_;
  std::vector<nn::Choice> choices_;
  std::size_t shown_ = 0;  // bytes of the text
};

/// The positions that generate() asks for, of a model whose positions are given; else nothing.
/// Sequence i has those of the seed + i. The task outlives it.
decltype(nn::GenerateOptions::positions) given_positions(const nn::Decoder& model,
                                                         const tasks::Task& task,
                                                         std::uint64_t seed);

/// The flags that say how tokens are chosen, --seed among them.
std::vector<Option> sampling_options();
nn::Sampling sampling_from(const Arguments& arguments);

}  // namespace longhand::app
