#include "nn/text/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::ranges::sort(tokens_, {}, &AddedToken::content);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& content = tokens_[i].content;
    LONGHAND_CHECK(!content.empty() && content.size() <= longest_content,
                   "added token: expected 1 to ", longest_content, " bytes, got ", content.size());
    LONGHAND_CHECK(i == 0 || tokens_[i - 1].content != content, "the added token ", quote(content),
                   " is given twice");
    begins_[static_cast<unsigned char>(content[0])] = true;
    ++first_[static_cast<unsigned char>(content[0]) + 1u];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  if (!tokens_.empty() && tokens_.front().content[0] == tokens_.back().content[0]) {
    only_first_byte_ = tokens_[0].content[0];
  }
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::find(std::string_view text,
                                                              std::size_t from) const {
  if (tokens_.empty()) return std::nullopt;
  for (std::size_t place = from; place < text.size(); ++place) {
    if (only_first_byte_) {
      const void* const found =
          std::memchr(text.data() + place, *only_first_byte_, text.size() - place);
      if (!found) break;
      place = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    }
    if (!begins_[static_cast<unsigned char>(text[place])]) continue;
    if (const auto match = match_at(text, place)) return match;
  }
  return std::nullopt;
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::match_at(std::string_view text,
                                                                  std::size_t place) const {
  std::optional<Match> longest;
  // The bytes of the text from `place` on are compared one after another. All tokens in [low, high)
  // begin with the bytes compared so far.
  const auto first = static_cast<unsigned char>(text[place]);
  auto low = tokens_.begin() + first_[first], high = tokens_.begin() + first_[first + 1u];
  if (low != high && low->content.size() == 1) longest = {place, place + 1, low->id};
  for (std::size_t depth = 1; place + depth < text.size() && low != high; ++depth) {
    const int wanted = static_cast<unsigned char>(text[place + depth]);
    const auto byte = [&](const AddedToken& token) {
      return depth < token.content.size() ? int{static_cast<unsigned char>(token.content[depth])}
                                          : -1;
    };
    low = std::partition_point(low, high, [&](const auto& token) { return byte(token) < wanted; });
    high =
        std::partition_point(low, high, [&](const auto& token) { return byte(token) == wanted; });
    if (low != high && low->content.size() == depth + 1) {
      longest = {place, place + depth + 1, low->id};
    }
  }
  return longest;
}

}  // namespace longhand::nn
