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

/// How a family of models was shown conversations. Each template is written out here; what a
/// published model says of it in Jinja is only recognised.
///
///   chatml    <|im_start|>ROLE\nTEXT<|im_end|>\n
///   smollm2   chatml; a conversation without a system message is given one of its own
///   qwen2     the same with another (Qwen 2.5)
///   llama3    <|begin_of_text|>, then <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>
///   llama3.2  llama3; the system message begins with two dates (Llama 3.1 as well)
///   gemma     <bos>, then <start_of_turn>ROLE\nTEXT<end_of_turn>\n; the assistant is called model,
///             the system message stands before the first message of the user
///
/// Llama's and Gemma's texts lose white space at both ends.
class ChatTemplate {
 public:
  static std::string names();  // "chatml, smollm2, ..."
  /// Refused where there is none. `date`: the day of llama3.2's system message, as "26 Jul 2024".
  explicit ChatTemplate(std::string_view name, std::string date = "26 Jul 2024");

  /// The name of the template that this Jinja text is; refused where it is none, with `source`.
  static std::string_view recognize(std::string_view jinja, std::string_view source);
  /// The Jinja text of a tokenizer's folder: chat_template.jinja, or what tokenizer_config.json has
  /// for it; empty where it has none.
  static std::string jinja_of(const std::filesystem::path& folder);

  /// The conversation up to where the assistant's next answer begins.
  std::string prompt(std::span<const ChatMessage> messages) const;
  /// An answer as it stands in a conversation, without the end of its turn.
  std::string answer(std::string_view text) const;
  /// The first exchange of a conversation, cut where the user's words and the answer stand.
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
    std::string_view system;  // the message of a conversation that has none
  };
  static const Known all[];

  std::string turn(ChatMessage::Role role, std::string_view text) const;
  std::string header(ChatMessage::Role role) const;
  std::string_view after_turn() const;  // what stands between two turns

  const Known* known_;
  std::string date_;
};

}  // namespace longhand::nn
