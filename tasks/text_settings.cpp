#include "tasks/text_settings.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {
namespace {

/// "none", or numbers of tokens parted by commas.
std::vector<std::int32_t> read_ends(std::string_view words) {
  std::vector<std::int32_t> ends;
  for (std::string_view rest = words; rest != "none";) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::int32_t token = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + comma, token);
    LONGHAND_CHECK(error == std::errc() && end == rest.data() + comma && token >= 0,
                   "task text: option end: expected none or numbers of tokens, got ", quote(words));
    ends.push_back(token);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  return ends;
}

/// A text in an option: \n, \t, \r, \\ and \xHH stand for what they do in C, \s for a space.
std::string read_escapes(const OptionValues& options, std::string_view name) {
  const std::string& written = options.text(name);
  std::string out;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] != '\\') {
      LONGHAND_CHECK(written[i] != '\n', "task text: option ", name,
                     ": expected \\n for a line break, got one");
      out += written[i];
      continue;
    }
    const char kind = ++i < written.size() ? written[i] : '\0';
    unsigned byte = 0;
    if (kind == 'x') {
      const char* const digits = written.data() + i + 1;
      const std::size_t left = written.size() - i - 1;
      const auto [end, error] =
          std::from_chars(digits, digits + std::min<std::size_t>(2, left), byte, 16);
      LONGHAND_CHECK(error == std::errc() && end == digits + 2, "task text: option ", name,
                     ": expected two hexadecimal digits after \\x in ", quote(written));
      out += static_cast<char>(byte);
      i += 2;
      continue;
    }
    constexpr std::string_view kinds = "ntrs\\", meanings = "\n\t\r \\";
    const std::size_t place = kinds.find(kind);
    LONGHAND_CHECK(place != std::string_view::npos, "task text: option ", name,
                   ": expected \\n, \\t, \\r, \\s, \\\\ or \\xHH, got ", quote(written));
    out += meanings[place];
  }
  return out;
}

}  // namespace

TextSettings::TextSettings(const OptionValues& options)
    : text(options.text("text")),
      validation(options.text("validation")),
      tokenizer(options.text("tokenizer")),
      held_out(options.number("held_out", 0, 1)),
      length(options.integer("length", 1, 1 << 20)),
      lossy(options.choice("lossy", {"0", "1"}) == 1),
      validates(options.choice("part", {"train", "validation"}) == 1),
      separator(read_escapes(options, "separator")),
      ends(read_ends(options.text("end"))),
      chat_template(options.text("template")),
      date(options.text("date")),
      instruction(read_escapes(options, "instruction")),
      examples(options.integer("examples", 0, 1000)),
      cuts(options.choice("cut", {"0", "1"}) == 1) {
  const std::size_t form = options.choice("form", {"auto", "text", "jsonl"});
  of_records = form == 2 || (form == 0 && text.extension() == ".jsonl");
  if (chat_template == "auto") {
    const std::string jinja = of_bytes() ? "" : nn::ChatTemplate::jinja_of(tokenizer);
    LONGHAND_CHECK(!jinja.empty(), "task text: option template: ", tokenizer,
                   " names none (in tokenizer_config.json or chat_template.jinja)");
    chat_template = nn::ChatTemplate::recognize(jinja, tokenizer);
  }
  if (chat_template != "none") nn::ChatTemplate(chat_template, date);  // refused where it is none
}

std::vector<std::int32_t> TextSettings::end_of_document(const Vocabulary& vocabulary) const {
  // Where bytes are the tokens the text's own file is read, separators and all.
  if (of_bytes() || ends.empty()) return vocabulary.encode_part(separator);
  return {ends.front()};
}

ConversationFormat TextSettings::format(const Vocabulary& vocabulary) const {
  std::optional<nn::ChatTemplate> chat;
  if (chat_template != "none") chat.emplace(chat_template, date);
  auto end = ends.empty() ? vocabulary.encode_part(separator) : std::vector{ends.front()};
  return {vocabulary, std::move(chat), std::move(end)};
}

TextSettings::Range TextSettings::part_of(std::uint64_t count) const {
  if (another_file()) return {0, count};
  const auto learned = count - static_cast<std::uint64_t>(held_out * static_cast<double>(count));
  return validates ? Range{learned, count} : Range{0, learned};
}

}  // namespace longhand::tasks
