#include "tasks/text_settings.h"

#include <algorithm>
#include <charconv>

#include "core/commas.h"
#include "core/error.h"
#include "core/quote.h"
#include "tasks/escapes.h"

namespace longhand::tasks {
namespace {

/// Parses "none" or token ids separated by commas.
std::vector<std::int32_t> read_ends(std::string_view words) {
  if (words == "none") return {};
  std::vector<std::int32_t> ends;
  for (const std::string_view word : at_commas(words)) {
    std::int32_t token = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    LONGHAND_CHECK(
        error == std::errc() && end == word.data() + word.size() && token >= 0,
        "task text: option end: expected \"none\" or token ids separated by commas, got ",
        quote(words));
    ends.push_back(token);
  }
  return ends;
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
      separator(unescaped(options, "separator")),
      ends(read_ends(options.text("end"))),
      chat_template(chat_template_name(options)),
      date(options.text("date")),
      instruction(unescaped(options, "instruction")),
      examples(options.integer("examples", 0, 1000)),
      cuts(options.choice("cut", {"0", "1"}) == 1) {
  const std::size_t form = options.choice("form", {"auto", "text", "jsonl"});
  of_records = form == 2 || (form == 0 && file().extension() == ".jsonl");
}

std::vector<std::pair<std::string, std::filesystem::path>> TextSettings::files() const {
  std::vector<std::pair<std::string, std::filesystem::path>> all;
  if (!text.empty()) all.emplace_back("text", text);
  if (another_file()) all.emplace_back("validation", validation);
  return all;
}

std::vector<std::int32_t> TextSettings::end_of_document(const Vocabulary& vocabulary) const {
  // If each byte is a token, the tokens of the text are the bytes of its file, in which documents
  // end with the separator. If a tokenizer encodes the text, every separator becomes the first
  // token of the list `ends` (option `end`), or its own tokens if the list is empty.
  if (of_bytes() || ends.empty()) return vocabulary.encode_part(separator);
  return {ends.front()};
}

ConversationFormat TextSettings::format(const Vocabulary& vocabulary) const {
  std::optional<nn::ChatTemplate> chat;
  if (chat_template != "none") chat.emplace(chat_template, date);
  auto end = ends.empty() ? vocabulary.encode_part(separator) : std::vector{ends.front()};
  return {vocabulary, std::move(chat), std::move(end)};
}

TextSettings::FilePart TextSettings::part_of(std::uint64_t count) const {
  if (another_file()) return {0, count};
  auto held = static_cast<std::uint64_t>(held_out * static_cast<double>(count));
  if (held_out > 0) held = std::max<std::uint64_t>(held, of_records ? 1 : 2);
  const auto learned = count - std::min(held, count);
  return validates ? FilePart{learned, count} : FilePart{0, learned};
}

}  // namespace longhand::tasks
