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

/// The tokens of a task: token i is written texts[i]. With a separator, one stands between each two
/// tokens, and text is cut there; further separators are passed over. Without one, text is cut
/// greedily, the longest token that fits first, so a vocabulary may hold both "345" and "3".
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::string> texts, std::string separator = {});

  /// One token for each character.
  static Vocabulary of_characters(std::string_view characters);

  std::int32_t size() const { return static_cast<std::int32_t>(texts_.size()); }
  const std::string& text(std::int32_t token) const;
  std::span<const std::string> texts() const { return texts_; }
  std::optional<std::int32_t> find(std::string_view text) const;
  std::int32_t at(std::string_view text) const;  // refused where there is none

  /// Refused, with the place, where no token fits.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// The same for text from outside: says what is wrong with it, or nothing.
  std::string encode(std::string_view text, std::vector<std::int32_t>& tokens) const;
  std::string decode(std::span<const std::int32_t> tokens) const;

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
