#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace longhand::tasks {

/// The tokens of a task, numbered from 0. Converts between texts and tokens.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  virtual std::int32_t size() const = 0;
  /// The text of a token. Throws an Error if there is no such token.
  virtual std::string text(std::int32_t token) const = 0;
  virtual std::optional<std::int32_t> find(std::string_view text) const = 0;
  std::int32_t at(std::string_view text) const;  // throws an Error if no token has this text
  /// The text that is inserted between the texts of two neighbouring tokens.
  virtual std::string_view separator() const { return {}; }

  /// Encodes a text. If no token matches at a position, throws an Error that states this position.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// Encodes a part of a text. Does not add the tokens that a tokenizer adds around a whole text.
  virtual std::vector<std::int32_t> encode_part(std::string_view text) const {
    return encode(text);
  }
  /// The tokens that encode() adds at the beginning of every text.
  virtual std::vector<std::int32_t> beginning() const { return {}; }
  /// Encodes a text that the user typed. Returns a description of what is wrong with the text, or
  /// "" if nothing is wrong.
  std::string encode(std::string_view text, std::vector<std::int32_t>& tokens) const;
  virtual std::string decode(std::span<const std::int32_t> tokens) const;
};

/// A list of tokens and their texts: the text of token i is texts[i]. With a separator, encode()
/// splits its argument at separators, and repeated separators count as one. Without a separator,
/// encode() repeatedly takes the longest token that matches the beginning of the remaining text, so
/// a vocabulary may contain both "345" and "3".
class WordVocabulary final : public Vocabulary {
 public:
  explicit WordVocabulary(std::vector<std::string> texts, std::string separator = {});

  /// A vocabulary with one token per character.
  static WordVocabulary of_characters(std::string_view characters);
  /// A vocabulary of the numbers from 0 to count - 1, with spaces between numbers. The text of
  /// token k is k.
  static WordVocabulary of_numbers(std::int64_t count);

  std::int32_t size() const override { return static_cast<std::int32_t>(texts_.size()); }
  std::string text(std::int32_t token) const override;
  std::optional<std::int32_t> find(std::string_view text) const override;
  std::string_view separator() const override { return separator_; }
  using Vocabulary::encode;
  std::vector<std::int32_t> encode(std::string_view text) const override;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string> texts_;
  std::string separator_;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> tokens_;
  std::size_t longest_ = 0;
};

/// Adds the tokens `more` at the end of `tokens`.
inline void append(std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

}  // namespace longhand::tasks
