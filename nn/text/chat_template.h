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

/// The format of the conversations on which a family of models was trained. All formats are
/// implemented in C++. The Jinja text of a published model selects one of them; it is not executed.
///
///   chatml    <|im_start|>ROLE\nTEXT<|im_end|>\n
///   smollm2   chatml with a default system message
///   qwen2     chatml with another default system message (Qwen 2.5)
///   llama3    <|begin_of_text|>, then <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>
///   llama3.2  llama3 whose system message begins with two dates (also used by Llama 3.1)
///   gemma     <bos>, then <start_of_turn>ROLE\nTEXT<end_of_turn>\n; the assistant's role is
///             named model, and the system message is placed before the first user message
///
/// The formats of Llama and Gemma remove white space at the beginning and end of each message.
class ChatTemplate {
 public:
  static std::string names();  // the names of all templates: "chatml, smollm2, ..."
  /// Throws an Error for an unknown name. `date` is the current date in the system message of
  /// llama3.2, for example "26 Jul 2024".
  explicit ChatTemplate(std::string_view name, std::string date = "26 Jul 2024");

  /// The name of the template with this Jinja text. Throws an Error that begins with `source` if
  /// the text is unknown.
  static std::string_view recognize(std::string_view jinja, std::string_view source);
  /// The Jinja text of the template chatml. Empty for all other templates: the program contains
  /// only the checksums of their texts.
  static std::string_view jinja(std::string_view name);
  /// Reads the Jinja text of a tokenizer's folder from chat_template.jinja or
  /// tokenizer_config.json. Returns an empty text if the folder contains no template.
  static std::string jinja_of(const std::filesystem::path& folder);

  /// The text of a conversation up to the point where the assistant's next answer begins.
  std::string prompt(std::span<const ChatMessage> messages) const;
  /// An assistant's answer as it appears in a conversation, without the token that ends the turn.
  std::string answer(std::string_view text) const;
  /// The text of a conversation with one user message and one answer. `before` precedes the
  /// message, `between` is between message and answer, and `after` follows the answer.
  struct Frame {
    std::string before, between, after;
  };
  Frame frame() const;
  /// The text of the token that ends a turn.
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
  std::string_view after_turn() const;  // the text between two turns

  const Known* known_;
  std::string date_;
};

}  // namespace longhand::nn
