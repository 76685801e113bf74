#include "tasks/vocabulary.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"

namespace longhand::tasks {

WordVocabulary::WordVocabulary(std::vector<std::string> texts, std::string separator)
    : texts_(std::move(texts)), separator_(std::move(separator)) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    LONGHAND_CHECK(!texts_[i].empty(), "vocabulary: token ", i, " is empty");
    LONGHAND_CHECK(separator_.empty() || texts_[i].find(separator_) == std::string::npos,
                   "vocabulary: token ", quote(texts_[i]), " contains the separator");
    LONGHAND_CHECK(tokens_.emplace(texts_[i], static_cast<std::int32_t>(i)).second,
                   "vocabulary: token ", quote(texts_[i]), " is given twice");
    longest_ = std::max(longest_, texts_[i].size());
  }
}

WordVocabulary WordVocabulary::of_characters(std::string_view characters) {
  std::vector<std::string> texts;
  for (const char character : characters) texts.emplace_back(1, character);
  return WordVocabulary(std::move(texts));
}

WordVocabulary WordVocabulary::of_numbers(std::int64_t count) {
  std::vector<std::string> texts;
  for (std::int64_t token = 0; token < count; ++token) texts.push_back(std::to_string(token));
  return WordVocabulary(std::move(texts), " ");
}

std::string WordVocabulary::text(std::int32_t token) const {
  LONGHAND_CHECK(token >= 0 && token < size(), "vocabulary: expected a token from 0 to ",
                 size() - 1, ", got ", token);
  return texts_[static_cast<std::size_t>(token)];
}

std::optional<std::int32_t> WordVocabulary::find(std::string_view text) const {
  const auto place = tokens_.find(text);
  return place == tokens_.end() ? std::nullopt : std::optional(place->second);
}

std::int32_t Vocabulary::at(std::string_view text) const {
  const auto token = find(text);
  LONGHAND_CHECK(token.has_value(), "vocabulary: there is no token ", quote(text));
  return *token;
}

std::vector<std::int32_t> WordVocabulary::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (std::size_t place = 0; place < text.size();) {
    std::size_t length = std::min(longest_, text.size() - place);
    if (!separator_.empty()) {
      length = std::min(text.size(), text.find(separator_, place)) - place;
      if (length == 0) {
        place += separator_.size();
        continue;
      }
    }
    auto token = find(text.substr(place, length));
    while (!token && length > 1 && separator_.empty()) token = find(text.substr(place, --length));
    LONGHAND_CHECK(
        token.has_value(), "text: no token of the vocabulary matches at character ",
        std::ranges::count_if(text.substr(0, place + 1), [](char c) { return !continues_utf8(c); }),
        ": ", quote(text.substr(place, 12)));
    tokens.push_back(*token);
    place += length;
  }
  return tokens;
}

std::string Vocabulary::encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
  try {
    tokens = encode(text);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string Vocabulary::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (!text.empty()) text += separator();
    text += this->text(token);
  }
  return text;
}

}  // namespace longhand::tasks
