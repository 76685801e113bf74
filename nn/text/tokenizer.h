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

/// The parts of a tokenizer, whatever file they came from.
///
/// With WordPattern::spaces the bytes of a token are its text, with a space for U+2581, and
/// characters without a token are written with the tokens <0x00> ... <0xFF>. With all other
/// patterns a token can have any bytes, and texts are merged byte by byte.
struct TokenizerParts {
  TokenTable tokens;
  MergeTable merges;
  JoinedBytes joined;  // from the merges
  WordPattern pattern = WordPattern::gpt2;
  bool nfc = false;                    // normalize first
  bool whole_words = false;            // a word that is a token is not merged
  std::vector<AddedToken> added;       // searched in the original text
  std::vector<AddedToken> added_late;  // found between those, in the normalized text
  std::vector<TokenId> before, after;  // added around each text

  /// The text in NFC or, with WordPattern::spaces, with a space for U+2581: the text itself where
  /// that changes nothing, otherwise in `buffer`. `changes`, cleared first, get the parts that were
  /// rewritten, in order, unless it is null.
  std::string_view normalize(std::string_view text, std::string& buffer,
                             std::vector<Rewritten>* changes) const;
};

/// Converts ids to text; its Encoder (encoder.h) converts text to ids. It is immutable, and any
/// number of threads may use it.
class Tokenizer {
 public:
  /// Throws an Error if the parts do not fit together.
  explicit Tokenizer(TokenizerParts parts);

  /// Upper bound of the ids.
  std::size_t size() const { return parts_.tokens.size(); }
  const TokenizerParts& parts() const { return parts_; }
  bool byte_level() const { return parts_.pattern != WordPattern::spaces; }
  /// The bytes that a token represents in a text.
  std::string token_bytes(TokenId id) const;
  bool special(TokenId id) const { return special_.size() > id && special_[id]; }

  /// Invalid UTF-8 becomes U+FFFD, as in Hugging Face's decoders: one for each part that could have
  /// begun a code point or, with WordPattern::spaces, one for each byte of the run of byte tokens.
  /// Throws an Error for an unknown id.
  std::string decode(std::span<const TokenId> ids, bool with_special = true) const;

  const AddedTokenFinder& added() const { return added_; }
  const AddedTokenFinder& added_late() const { return added_late_; }

  static constexpr TokenId none = 0xffffffff;
  /// The token of a single byte, or none: with byte-level patterns the byte itself, with
  /// WordPattern::spaces <0xNN>.
  TokenId byte_token(unsigned char byte) const { return byte_tokens_[byte]; }
  /// With WordPattern::spaces: the token of a character.
  std::optional<TokenId> character_token(std::string_view character) const {
    if (character.size() > 1) return parts_.tokens.find(character);
    const TokenId id = ascii_tokens_[static_cast<unsigned char>(character[0])];
    return id == none ? std::nullopt : std::optional(id);
  }
  /// True if `id` is the token of this ASCII character.
  bool is_ascii(unsigned char c, TokenId id) const { return c < 128 && ascii_tokens_[c] == id; }
  /// The merge of two ASCII characters. Most words begin with such a merge, and this small table
  /// stays in the cache.
  MergeTable::Merge ascii_merge(unsigned char a, unsigned char b) const {
    return ascii_merges_[a * 128u + b];
  }

 private:
  TokenizerParts parts_;
  AddedTokenFinder added_, added_late_;
  std::array<TokenId, 256> byte_tokens_, ascii_tokens_;
  std::vector<MergeTable::Merge> ascii_merges_;
  std::vector<bool> special_;
  // WordPattern::spaces: the byte of a token <0xNN>; -1 for other tokens
  std::vector<std::int16_t> byte_of_;
};

}  // namespace longhand::nn
