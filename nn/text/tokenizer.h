#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/text/added_tokens.h"
#include "nn/text/merge_builder.h"
#include "nn/text/nfc.h"
#include "nn/text/token_table.h"
#include "nn/text/word_scanner.h"

namespace longhand::nn {

/// U+2581, which represents a space in the texts of tokens with WordPattern::spaces.
inline constexpr std::string_view space_mark = "\u2581";
/// Returns `text` with every occurrence of `from` replaced by `to`.
std::string replaced_all(std::string_view text, std::string_view from, std::string_view to);

/// The parts of a tokenizer. They do not depend on the file format from which they were read.
///
/// With WordPattern::spaces, a token's bytes are its text with a space in place of each U+2581. A
/// character without a token is then encoded as one token <0xNN> for each of its bytes. With all
/// other patterns, a token can have any bytes, and merging starts from single bytes.
struct TokenizerParts {
  TokenTable tokens;
  MergeTable merges;
  JoinedBytes joined;  // the pairs of bytes that merges can join
  WordPattern pattern = WordPattern::gpt2;
  bool nfc = false;  // true: a text is first converted to Unicode's normalization form C
  /// true: a word that is a token is encoded as this token, without merging
  bool whole_words = false;
  std::vector<AddedToken> added;  // tokens that are searched for in the original text
  /// Tokens that are searched for after normalization. Tokens of `added` are found first, and the
  /// text between them is normalized.
  std::vector<AddedToken> added_late;
  std::vector<TokenId> before, after;  // tokens added before and after each text

  /// Normalizes a text: if `nfc` is true, converts it to NFC; with WordPattern::spaces, replaces
  /// each U+2581 by a space. If nothing changes, returns the text itself. Otherwise the result is
  /// in `buffer`. Unless null, `changes` is cleared and receives the rewritten parts in order.
  std::string_view normalize(std::string_view text, std::string& buffer,
                             std::vector<Rewritten>* changes) const;
};

/// Converts ids to text. The class Encoder (encoder.h) converts text to ids. A tokenizer is
/// immutable, and any number of threads may use it.
class Tokenizer {
 public:
  /// Throws an Error if the parts contradict each other.
  explicit Tokenizer(TokenizerParts parts);

  /// Upper bound of the ids: every id is less than size().
  std::size_t size() const { return parts_.tokens.size(); }
  const TokenizerParts& parts() const { return parts_; }
  bool byte_level() const { return parts_.pattern != WordPattern::spaces; }
  /// The bytes that a token contributes to a decoded text.
  std::string token_bytes(TokenId id) const;
  bool special(TokenId id) const { return special_.size() > id && special_[id]; }

  /// Converts ids to text. As in Hugging Face's decoders, invalid UTF-8 is replaced by U+FFFD
  /// (replace_broken_utf8() in core/utf8.h). With WordPattern::spaces, a run of byte tokens that is
  /// not valid UTF-8 becomes one U+FFFD per byte. Throws an Error for an unknown id.
  std::string decode(std::span<const TokenId> ids, bool with_special = true) const;

  const AddedTokenFinder& added() const { return added_; }
  const AddedTokenFinder& added_late() const { return added_late_; }

  static constexpr TokenId none = 0xffffffff;
  /// The token of a single byte, or `none`. With WordPattern::spaces, this is the token <0xNN>.
  /// With all other patterns, it is the token whose only byte is `byte`.
  TokenId byte_token(unsigned char byte) const { return byte_tokens_[byte]; }
  /// The token of a character, for WordPattern::spaces.
  std::optional<TokenId> character_token(std::string_view character) const {
    if (character.size() > 1) return parts_.tokens.find(character);
    const TokenId id = ascii_tokens_[static_cast<unsigned char>(character[0])];
    return id == none ? std::nullopt : std::optional(id);
  }
  /// True if `id` is the token of this ASCII character.
  bool is_ascii(unsigned char c, TokenId id) const { return c < 128 && ascii_tokens_[c] == id; }
  /// The merge of the tokens of two ASCII characters. Most look-ups of merges are for such pairs.
  /// Their merges are in the separate table ascii_merges_, which is small enough for the CPU's
  /// cache.
  MergeTable::Merge ascii_merge(unsigned char a, unsigned char b) const {
    return ascii_merges_[a * 128u + b];
  }

 private:
  TokenizerParts parts_;
  AddedTokenFinder added_, added_late_;
  std::array<TokenId, 256> byte_tokens_, ascii_tokens_;
  std::vector<MergeTable::Merge> ascii_merges_;
  std::vector<bool> special_;
  // The byte NN of each token <0xNN>, and -1 for all other tokens. Empty unless the pattern is
  // WordPattern::spaces.
  std::vector<std::int16_t> byte_of_;
};

}  // namespace longhand::nn
