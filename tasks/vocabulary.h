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

/// The tokens of a task, numbered from 0, and how text is cut into them.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  virtual std::int32_t size() const = 0;
  /// The bytes of text that a token stands for; refused unless it is one.
  virtual std::string text(std::int32_t token) const = 0;
  virtual std::optional<std::int32_t> find(std::string_view text) const = 0;
  std::int32_t at(std::string_view text) const;  // refused where there is none
  /// What stands between the texts of two tokens.
  virtual std::string_view separator() const { return {}; }

  /// Refused, with the place, where no token fits.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// A part of a text: without what a tokenizer puts around a whole one.
  virtual std::vector<std::int32_t> encode_part(std::string_view text) const {
    return encode(text);
  }
  /// What stands before every whole text.
  virtual std::vector<std::int32_t> beginning() const { return {}; }
  /// encode() for text from outside: says what is wrong with it, or nothing.
  std::string encode(std::string_view text, std::vector<std::int32_t>& tokens) const;
  virtual std::string decode(std::span<const std::int32_t> tokens) const;
};

/// A list of words: token i is written texts[i]. With a separator, one stands between each two
/// tokens, and text is cut there; further separators are passed over. Without one, text is cut
/// greedily, the longest token that fits first, so a vocabulary may hold both "345" and "3".
class WordVocabulary final : public Vocabulary {
 public:
  explicit WordVocabulary(std::vector<std::string> texts, std::string separator = {});

  /// One token for each character.
  static WordVocabulary of_characters(std::string_view characters);
  /// The numbers from 0, with spaces between them: token k is written as k.
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

}  // namespace longhand::tasks
