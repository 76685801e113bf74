#include "nn/text/chat_template.h"

#include <algorithm>
#include <iterator>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"
#include "core/text_file.h"
#include "core/utf8.h"
#include "nn/text/unicode.h"

namespace longhand::nn {
namespace {

namespace fs = std::filesystem;
using Role = ChatMessage::Role;

constexpr std::size_t largest_file = std::size_t{64} << 20;  // maximum bytes of a file

/// A known chat template in the language Jinja, identified by its CRC-32C. The CRC does not include
/// white space and the escape sequence \n, because published copies of a template differ in them.
struct Text {
  std::uint32_t sum;
  std::string_view name;
};
constexpr Text texts[] = {
    {0x00c70e65, "chatml"},   {0xdc0b646f, "llama3"}, {0xc7b107bb, "smollm2"},
    {0x26be2b3f, "qwen2"},    {0x99d34552, "qwen2"},  // templates of Qwen 2.5 and Qwen 2.5 Coder
    {0xc5f1ab3f, "llama3.2"},                         // the template of Llama 3.1
    {0x7f76eafd, "llama3.2"}, {0xd9ee552d, "gemma"},  // templates of Llama 3.2 and Gemma 2
    {0xd10cdc26, "gemma"},                            // the template of Gemma 3
};

std::uint32_t sum_of(std::string_view jinja) {
  std::string plain;
  for (std::size_t i = 0; i < jinja.size(); ++i) {
    if (jinja.substr(i).starts_with("\\n")) {
      ++i;
    } else if (std::string_view(" \t\r\n").find(jinja[i]) == std::string_view::npos) {
      plain += jinja[i];
    }
  }
  return crc32c(plain);
}

/// True for the characters that Python's str.strip() removes: Unicode white space and U+001C to
/// U+001F.
bool is_stripped(char32_t c) { return class_of(c) == CodeClass::space || (c >= 0x1c && c <= 0x1f); }

/// Removes white space at the beginning and end of a text. The text must be valid UTF-8.
std::string_view stripped(std::string_view text) {
  while (!text.empty()) {
    const CodePoint first = decode_utf8(text.data());
    if (!is_stripped(first.value)) break;
    text.remove_prefix(first.length);
  }
  while (!text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && continues_utf8(text[last])) --last;
    if (!is_stripped(decode_utf8(text.data() + last).value)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string_view name_of(Role role) {
  constexpr std::string_view names[] = {"system", "user", "assistant"};
  return names[static_cast<std::size_t>(role)];
}

}  // namespace

constexpr ChatTemplate::Known ChatTemplate::all[] = {
    {"chatml", Form::chatml, {}},
    {"smollm2", Form::chatml,
     "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
    {"qwen2", Form::chatml, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
    {"llama3", Form::llama3, {}},
    {"llama3.2", Form::llama3, {}},
    {"gemma", Form::gemma, {}},
};

std::string ChatTemplate::names() {
  std::string names;
  for (const Known& known : all) names += text(names.empty() ? "" : ", ", known.name);
  return names;
}

ChatTemplate::ChatTemplate(std::string_view name, std::string date) : date_(std::move(date)) {
  known_ = std::ranges::find(all, name, &Known::name);
  LONGHAND_CHECK(known_ != std::end(all), "expected one of the chat templates ", names(), ", got ",
                 quote(name));
}

std::string_view ChatTemplate::recognize(std::string_view jinja, std::string_view source) {
  const std::uint32_t sum = sum_of(jinja);
  const auto* const found = std::ranges::find(texts, sum, &Text::sum);
  LONGHAND_CHECK(found != std::end(texts), source, ": unknown chat template: expected one of ",
                 names(), ", got ", quote(jinja));
  return found->name;
}

std::string_view ChatTemplate::jinja(std::string_view name) {
  if (name != "chatml") return {};
  return R"({% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + )"
         R"(message['content'] + '<|im_end|>' + '\n'}}{% endfor %})"
         R"({% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";
}

std::string ChatTemplate::jinja_of(const fs::path& folder) {
  const fs::path alone = folder / "chat_template.jinja", config = folder / "tokenizer_config.json";
  if (fs::exists(alone)) return read_text(alone, largest_file);
  if (!fs::exists(config)) return {};
  const std::optional<Json> json = Json::parse(read_text(config, largest_file));
  LONGHAND_CHECK(json && json->is_object(), config.string(), ": expected a JSON object");
  const Json* const field = json->find("chat_template");
  if (!field || field->is_null()) return {};
  if (field->is_string()) return field->string();
  if (field->is_array()) {  // a list of several templates, each with a name
    for (const Json& one : field->elements()) {
      const Json* const name = one.is_object() ? one.find("name") : nullptr;
      const Json* const jinja = one.is_object() ? one.find("template") : nullptr;
      if (name && *name == "default" && jinja && jinja->is_string()) return jinja->string();
    }
  }
  fail(config.string(),
       ": chat_template: expected a string, or several templates with one named \"default\"");
}

std::string ChatTemplate::prompt(std::span<const ChatMessage> messages) const {
  for (const ChatMessage& message : messages) {
    const std::size_t broken = find_broken_utf8(message.text);
    LONGHAND_CHECK(broken == std::string::npos,
                   "chat: expected messages in UTF-8, got one with an invalid byte at position ",
                   broken);
  }
  std::string out;
  const bool has_system = !messages.empty() && messages[0].role == Role::system;
  std::string_view system = has_system ? std::string_view(messages[0].text) : known_->system;
  std::string before_user;  // for Gemma: the system message, placed before the user's message
  if (known_->form == Form::gemma) {
    out = "<bos>";
    if (has_system) before_user = text(system, "\n\n");
  } else {
    if (known_->form == Form::llama3) out = "<|begin_of_text|>";
    std::string dated;
    if (known_->name == "llama3.2") {
      dated = text("Cutting Knowledge Date: December 2023\nToday Date: ", date_, "\n\n",
                   stripped(system));
      out += text(header(Role::system), dated, end_of_turn());
    } else if (has_system || !system.empty()) {
      out += turn(Role::system, system);
    }
  }
  for (const ChatMessage& message : messages.subspan(has_system ? 1 : 0)) {
    if (before_user.empty()) {
      out += turn(message.role, message.text);
    } else {
      out += text(header(message.role), before_user, answer(message.text), end_of_turn(),
                  after_turn());
      before_user.clear();
    }
  }
  return out + header(Role::assistant);
}

std::string ChatTemplate::answer(std::string_view text) const {
  LONGHAND_CHECK(find_broken_utf8(text) == std::string_view::npos,
                 "chat: expected an answer in UTF-8, got invalid bytes");
  return std::string(known_->form == Form::chatml ? text : stripped(text));
}

ChatTemplate::Frame ChatTemplate::frame() const {
  const std::string words = "words";
  const std::string whole = prompt(std::vector<ChatMessage>{{Role::user, words}});
  const std::size_t place = whole.rfind(words);
  return {whole.substr(0, place), whole.substr(place + words.size()),
          text(end_of_turn(), after_turn())};
}

std::string_view ChatTemplate::after_turn() const {
  return known_->form == Form::llama3 ? "" : "\n";
}

std::string_view ChatTemplate::end_of_turn() const {
  constexpr std::string_view ends[] = {"<|im_end|>", "<|eot_id|>", "<end_of_turn>"};
  return ends[static_cast<std::size_t>(known_->form)];
}

std::string ChatTemplate::turn(Role role, std::string_view words) const {
  return text(header(role), answer(words), end_of_turn(), after_turn());
}

std::string ChatTemplate::header(Role role) const {
  switch (known_->form) {
    case Form::chatml:
      return text("<|im_start|>", name_of(role), '\n');
    case Form::llama3:
      return text("<|start_header_id|>", name_of(role), "<|end_header_id|>\n\n");
    default:
      break;
  }
  return text("<start_of_turn>", role == Role::assistant ? "model" : name_of(role), '\n');
}

}  // namespace longhand::nn
