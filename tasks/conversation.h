#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/text/chat_template.h"
#include "tasks/options.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// The name of the chat template that a task's option `template` selects, or "none". If the option
/// is `auto`, the template in the tokenizer's folder is selected. Throws an Error for an unknown
/// template.
std::string chat_template_name(const OptionValues& options);

/// Encodes conversations as tokens. Without a chat template, the messages are joined, and end
/// tokens follow each answer.
class ConversationFormat {
 public:
  /// `end` contains the tokens that follow an answer if there is no template. The vocabulary must
  /// outlive this object.
  ConversationFormat(const Vocabulary& vocabulary, std::optional<nn::ChatTemplate> chat,
                     std::vector<std::int32_t> end);

  /// The tokens of a conversation up to the point where the next answer starts.
  std::vector<std::int32_t> prompt(std::span<const nn::ChatMessage> messages) const;
  /// The tokens of an answer and its end. The answer is encoded separately from the prompt, as in
  /// generation, so no token contains characters of both.
  std::vector<std::int32_t> answer(std::string_view text) const;
  const std::vector<std::int32_t>& end() const { return end_; }

 private:
  const Vocabulary& vocabulary_;
  std::optional<nn::ChatTemplate> chat_;
  std::vector<std::int32_t> end_;
};

}  // namespace longhand::tasks
