#include "tasks/conversation.h"

#include <utility>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/text_vocabulary.h"

namespace longhand::tasks {
std::string chat_template_name(const OptionValues& options) {
  std::string name = options.text("template");
  if (name == "auto") {
    const std::string& tokenizer = options.text("tokenizer");
    const std::string jinja =
        names_tokenizer(tokenizer) ? nn::ChatTemplate::jinja_of(tokenizer) : std::string();
    LONGHAND_CHECK(!jinja.empty(), "task ", options.task(), ": option template: ", tokenizer,
                   " has no chat template in tokenizer_config.json or chat_template.jinja");
    name = nn::ChatTemplate::recognize(jinja, tokenizer);
  }
  // Only checks the name: the constructor throws an Error for an unknown name.
  if (name != "none") nn::ChatTemplate(name, options.text("date"));
  return name;
}

ConversationFormat::ConversationFormat(const Vocabulary& vocabulary,
                                       std::optional<nn::ChatTemplate> chat,
                                       std::vector<std::int32_t> end)
    : vocabulary_(vocabulary), chat_(std::move(chat)), end_(std::move(end)) {
  if (!chat_) return;
  end_ = vocabulary.encode_part(chat_->end_of_turn());
  LONGHAND_CHECK(end_.size() == 1, "chat template: expected a tokenizer that encodes ",
                 quote(chat_->end_of_turn()), " as one token, got ", end_.size(), " tokens");
}

std::vector<std::int32_t> ConversationFormat::prompt(
    std::span<const nn::ChatMessage> messages) const {
  if (chat_) return vocabulary_.encode_part(chat_->prompt(messages));
  std::vector<std::int32_t> tokens = vocabulary_.beginning();
  for (const nn::ChatMessage& message : messages) {
    append(tokens, message.role == nn::ChatMessage::Role::assistant
                       ? answer(message.text)
                       : vocabulary_.encode_part(message.text));
  }
  return tokens;
}

std::vector<std::int32_t> ConversationFormat::answer(std::string_view text) const {
  std::vector<std::int32_t> tokens =
      vocabulary_.encode_part(chat_ ? chat_->answer(text) : std::string(text));
  append(tokens, end_);
  return tokens;
}

}  // namespace longhand::tasks
