#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/text/token_table.h"

namespace longhand::nn {

/// A token, such as <|endoftext|>, that is searched for in a text before the text is split into
/// words.
struct AddedToken {
  TokenId id;
  std::string content;
  bool special;  // true: decoding can omit this token
};

/// Finds added tokens in a text, from left to right. If several tokens match at the same place, the
/// longest one is found.
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  /// The contents of the tokens must have 1 to longest_content bytes.
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);
  static constexpr std::size_t longest_content = 256;

  struct Match {
    std::size_t begin, end;
    TokenId id;
  };
  /// The first match of an added token at or after position `from` of the text.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

  bool empty() const { return tokens_.empty(); }

 private:
  std::optional<Match> match_at(std::string_view text, std::size_t place) const;

  std::vector<AddedToken> tokens_;  // sorted by content
  /// first_[b] is the index in tokens_ of the first token that begins with byte b or a higher byte.
  std::array<std::uint32_t, 257> first_ = {};
  std::array<bool, 256> begins_ = {};    // true if a token begins with this byte
  std::optional<char> only_first_byte_;  // set if all tokens begin with the same byte
};

}  // namespace longhand::nn
