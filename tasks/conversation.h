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

/// The chat template selected by a task's option `template`, or "none". `auto` selects the template
/// in the folder given by the option `tokenizer`. Throws an Error for an unknown template.
std::string chat_template_name(const OptionValues& options);

/// Encodes conversations as tokens, either with a chat template or as a sequence of messages with
/// an end after each answer.
class ConversationFormat {
 public:
  /// `end`: tokens that follow an answer if there is no template. The vocabulary must outlive the
  /// object.
  ConversationFormat(const Vocabulary& vocabulary, std::optional<nn::ChatTemplate> chat,
                     std::vector<std::int32_t> end);

  /// The tokens of a conversation up to the point where the next answer starts.
  std::vector<std::int32_t> prompt(std::span<const nn::ChatMessage> messages) const;
  /// The tokens of an answer with its end. The answer is encoded separately from the prompt, as in
  /// generation, so no merge crosses its start.
  std::vector<std::int32_t> answer(std::string_view text) const;
  const std::vector<std::int32_t>& end() const { return end_; }

 private:
  const Vocabulary& vocabulary_;
  std::optional<nn::ChatTemplate> chat_;
  std::vector<std::int32_t> end_;
};

}  // namespace longhand::tasks
