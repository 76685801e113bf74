#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace longhand::nn {

/// One turn of a conversation.
struct ChatMessage {
  enum class Role { system, user, assistant };
  Role role = Role::user;
  std::string text;
};

/// The form in which a family of models was trained on conversations. The templates are implemented
/// here; the Jinja text of a published model is only recognized.
///
///   chatml    <|im_start|>ROLE\nTEXT<|im_end|>\n
///   smollm2   chatml with a default system message
///   qwen2     chatml with another default system message (Qwen 2.5)
///   llama3    <|begin_of_text|>, then <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>
///   llama3.2  llama3; the system message begins with two dates (Llama 3.1 as well)
///   gemma     <bos>, then <start_of_turn>ROLE\nTEXT<end_of_turn>\n; the assistant is called model,
///             the system message precedes the first message of the user
///
/// Texts of Llama and Gemma lose white space at both ends.
class ChatTemplate {
 public:
  static std::string names();  // "chatml, smollm2, ..."
  /// Throws an Error for an unknown name. `date`: the day in llama3.2's system message, such as "26
  /// Jul 2024".
  explicit ChatTemplate(std::string_view name, std::string date = "26 Jul 2024");

  /// The name of the template that this Jinja text implements. Throws an Error that names `source`
  /// if it is unknown.
  static std::string_view recognize(std::string_view jinja, std::string_view source);
  /// The Jinja text in a tokenizer's folder, from chat_template.jinja or tokenizer_config.json;
  /// empty if there is none.
  static std::string jinja_of(const std::filesystem::path& folder);

  /// The conversation up to the start of the assistant's next answer.
  std::string prompt(std::span<const ChatMessage> messages) const;
  /// An answer as it appears in a conversation, without the end of its turn.
  std::string answer(std::string_view text) const;
  /// The first exchange of a conversation, split around the user's message and the answer.
  struct Frame {
    std::string before, between, after;
  };
  Frame frame() const;
  /// The token that ends a turn.
  std::string_view end_of_turn() const;

 private:
  enum class Form { chatml, llama3, gemma };
  struct Known {
    std::string_view name;
    Form form;
    std::string_view system;  // default system message
  };
  static const Known all[];

  std::string turn(ChatMessage::Role role, std::string_view text) const;
  std::string header(ChatMessage::Role role) const;
  std::string_view after_turn() const;  // text between two turns

  const Known* known_;
  std::string date_;
};

}  // namespace longhand::nn
