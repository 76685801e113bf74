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

/// The chat template that a task's option `template` names, or "none"; `auto` is that of the folder
/// which its option `tokenizer` names. Refused where it is none that is known.
std::string chat_template_name(const OptionValues& options);

/// Conversations in a model's tokens: by a chat template, or, without one, what was said one after
/// another with an end after each answer.
class ConversationFormat {
 public:
  /// `end`: the tokens after an answer where there is no template. The vocabulary must outlive it.
  ConversationFormat(const Vocabulary& vocabulary, std::optional<nn::ChatTemplate> chat,
                     std::vector<std::int32_t> end);

  /// Up to where the next answer begins.
  std::vector<std::int32_t> prompt(std::span<const nn::ChatMessage> messages) const;
  /// An answer with its end. Where a text is encoded by itself, as here, and not as a part of the
  /// whole conversation, a merge across its beginning is missing: so it is in generating, too.
  std::vector<std::int32_t> answer(std::string_view text) const;
  const std::vector<std::int32_t>& end() const { return end_; }

 private:
  const Vocabulary& vocabulary_;
  std::optional<nn::ChatTemplate> chat_;
  std::vector<std::int32_t> end_;
};

}  // namespace longhand::tasks
