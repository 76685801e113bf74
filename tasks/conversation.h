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

/// The chat template named by a task's option `template`, or "none". `auto` is that of the folder
/// in the option `tokenizer`. Throws an Error for an unknown template.
std::string chat_template_name(const OptionValues& options);

/// Conversations in a model's tokens: with a chat template, or without one as a sequence of
/// messages with an end after each answer.
class ConversationFormat {
 public:
  /// `end`: tokens after an answer if there is no template. The vocabulary must outlive the object.
  ConversationFormat(const Vocabulary& vocabulary, std::optional<nn::ChatTemplate> chat,
                     std::vector<std::int32_t> end);

  /// The tokens up to the start of the next answer.
  std::vector<std::int32_t> prompt(std::span<const nn::ChatMessage> messages) const;
  /// An answer with its end. It is encoded separately from the prompt, so no merge crosses its
  /// start; generation has the same property.
  std::vector<std::int32_t> answer(std::string_view text) const;
  const std::vector<std::int32_t>& end() const { return end_; }

 private:
  const Vocabulary& vocabulary_;
  std::optional<nn::ChatTemplate> chat_;
  std::vector<std::int32_t> end_;
};

}  // namespace longhand::tasks
