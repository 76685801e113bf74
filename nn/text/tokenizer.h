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

/// What a tokenizer is made of, whatever file said so.
///
/// With WordPattern::spaces a token's bytes are its text, with a space for U+2581, and characters
/// that are no token are spelled with the tokens <0x00> ... <0xFF>. With all other patterns a
/// token's bytes are any bytes, and texts are merged byte by byte.
struct TokenizerParts {
  TokenTable tokens;
  MergeTable merges;
  JoinedBytes joined;  // by the merges
  WordPattern pattern = WordPattern::gpt2;
  bool nfc = false;                    // normalize first
  bool whole_words = false;            // a word that is a token is taken whole, merges or not
  std::vector<AddedToken> added;       // found in the text as it is
  std::vector<AddedToken> added_late;  // found between those, in the normalized text
  std::vector<TokenId> before, after;  // put around each text

  /// The text in NFC or, with WordPattern::spaces, with a space for U+2581: the text itself where
  /// that changes nothing, otherwise in `buffer`. `changes`, cleared first, get the parts that were
  /// rewritten, in order, unless it is null.
  std::string_view normalize(std::string_view text, std::string& buffer,
                             std::vector<Rewritten>* changes) const;
};

/// Turns ids into text; its Encoder (encoder.h) turns text into ids. It does not change, and any
/// number of threads may use it.
class Tokenizer {
 public:
  /// An Error if the parts do not fit each other.
  explicit Tokenizer(TokenizerParts parts);

  /// Ids are below this.
  std::size_t size() const { return parts_.tokens.size(); }
  const TokenizerParts& parts() const { return parts_; }
  bool byte_level() const { return parts_.pattern != WordPattern::spaces; }
  /// The bytes a token stands for in a text.
  std::string token_bytes(TokenId id) const;
  bool special(TokenId id) const { return special_.size() > id && special_[id]; }

  /// Bytes that are no well-formed UTF-8 become U+FFFD, as Hugging Face's decoders have it: one for
  /// each part that could have begun a code point or, with WordPattern::spaces, one for each byte
  /// of the run of byte tokens. An Error for an id that is no token.
  std::string decode(std::span<const TokenId> ids, bool with_special = true) const;

  const AddedTokenFinder& added() const { return added_; }
  const AddedTokenFinder& added_late() const { return added_late_; }

  static constexpr TokenId none = 0xffffffff;
  /// The token of a single byte, or none: byte-level, a token by itself; with
  /// WordPattern::spaces, <0xNN>.
  TokenId byte_token(unsigned char byte) const { return byte_tokens_[byte]; }
  /// WordPattern::spaces: the token of a character.
  std::optional<TokenId> character_token(std::string_view character) const {
    if (character.size() > 1) return parts_.tokens.find(character);
    const TokenId id = ascii_tokens_[static_cast<unsigned char>(character[0])];
    return id == none ? std::nullopt : std::optional(id);
  }
  /// Whether `id` is the token of that ASCII character.
  bool is_ascii(unsigned char c, TokenId id) const { return c < 128 && ascii_tokens_[c] == id; }
  /// The merge of two ASCII characters that are tokens: most words begin with these, and a small
  /// table stays in the CPU's cache.
  MergeTable::Merge ascii_merge(unsigned char a, unsigned char b) const {
    return ascii_merges_[a * 128u + b];
  }

 private:
  TokenizerParts parts_;
  AddedTokenFinder added_, added_late_;
  std::array<TokenId, 256> byte_tokens_, ascii_tokens_;
  std::vector<MergeTable::Merge> ascii_merges_;
  std::vector<bool> special_;
  std::vector<std::int16_t> byte_of_;  // WordPattern::spaces: of the tokens <0xNN>; others -1
};

}  // namespace longhand::nn
