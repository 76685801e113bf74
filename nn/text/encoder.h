#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/parallel.h"
#include "nn/text/merger.h"
#include "nn/text/nfc.h"
#include "nn/text/tokenizer.h"

namespace longhand::nn {

/// The bytes [begin, end) of a text.
struct ByteRange {
  std::size_t begin, end;
  bool operator==(const ByteRange&) const = default;
};

/// Converts texts to token ids. The encoder finds added tokens (such as <|endoftext|>), normalizes
/// the text between them, cuts this text into words, and merges the bytes or characters of each
/// word to tokens. The tokens in TokenizerParts::added_late are searched for after normalization.
/// The tokens of recent words are cached. Encoding changes the cache, so each thread needs its own
/// encoder.
class Encoder {
 public:
  /// A long word is merged in parts of about `piece` bytes, which bounds the memory. The result
  /// does not depend on `piece`.
  explicit Encoder(const Tokenizer& tokenizer, std::size_t piece = std::size_t{1} << 16);

  struct Options {
    bool around = true;   // include the tokens that the tokenizer adds before and after each text
    bool ranges = false;  // also return the byte range of the text that each token represents
  };
  /// A function that receives the next tokens, some ten thousand at a time. `ranges` is empty
  /// unless Options::ranges is true. Tokens that the tokenizer adds around a text have empty
  /// ranges. If normalization rewrote a part of the text, every token of this part has the range of
  /// the whole part. The range of a token does not include dropped bytes before or after the token.
  using Sink = FunctionRef<void(std::span<const TokenId> ids, std::span<const ByteRange> ranges)>;

  /// Encodes a text. If the text is not valid UTF-8, throws an Error with the position of the first
  /// invalid byte. The sink is then not called.
  void encode(std::string_view text, Options options, Sink sink);
  std::vector<TokenId> encode(std::string_view text, Options options = {true, false});

  /// Number of bytes that were dropped because the vocabulary has no token for them, summed over
  /// all texts so far.
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  /// Cache entry of a word of at most 31 bytes, in one cache line of the CPU. It contains the
  /// word's bytes, its length in the last byte of `text`, and its tokens.
  struct alignas(64) Known {
    std::uint64_t text[4];
    TokenId ids[7];
    std::uint32_t count;
  };
  static constexpr std::size_t known_length = 31;
  struct Word {
    std::string_view text;
    std::uint64_t key[4];  // the word's bytes and length, in the form of Known::text
    Known* known;          // place of the word in the cache; null if the word is too long
  };
  static constexpr std::size_t fewest_known_places = 1 << 10, most_known_places = 1 << 16;

  void encode_between_added(std::string_view text, std::size_t begin);
  /// Encodes a part of the normalized text in which no added token occurs. `begin` is the position
  /// of this part in the whole normalized text.
  void encode_normalized(std::string_view text, std::size_t begin);
  void encode_block(std::string_view block, std::size_t begin);
  template <class Scanner>
  void encode_words(std::string_view block, const Scanner& scanner);
  template <class Scanner>
  void encode_words_with_ranges(std::string_view block, std::size_t begin, const Scanner& scanner);
  /// Normalizes a text. Later calls of original_range() refer to this text. `begin` is the position
  /// of `text` in the whole text that is being encoded.
  std::string_view normalize(std::string_view text, std::size_t begin);
  /// The range of the original text that corresponds to the bytes [first, last) of the normalized
  /// text. In successive calls, the ranges must ascend.
  ByteRange original_range(std::size_t first, std::size_t last);
  std::size_t end_of_block(std::string_view text, std::size_t begin) const;
  void set(Word& word, std::string_view text, std::size_t readable);
  TokenId* encode_word(const Word& word, TokenId* out);
  TokenId* encode_unknown(std::string_view word, TokenId* out);
  bool is_long(std::string_view word) const { return word.size() > 2 * piece_; }
  template <class F>
  void each_part(std::string_view word, F f);
  void merge_word(std::string_view word);
  void merge_part(std::string_view part);
  bool is_whole(std::string_view word);
  /// The bytes [begin, end) of a long word, which are merged separately. `head` is the first token
  /// boundary inside the part, and `tail` is the last one. The tokens before `head` and from `tail`
  /// on are used to test whether a merge could cross an end of the part.
  struct Part {
    std::size_t begin, end, head, tail;
  };
  std::vector<Part> parts_of(std::string_view word);
  Part merged_part(std::string_view word, std::size_t begin, std::size_t end) const;
  Part next_part(std::string_view word, std::size_t begin, std::size_t length);
  bool is_apart(std::string_view word, const Part& left, const Part& right);
  bool can_begin_part(std::string_view word, std::size_t place) const;
  void add_symbols(std::string_view word);
  void find_merges(std::string_view word);
  void put(TokenId id, ByteRange range);
  void make_room(std::size_t count);
  void flush();
  void remember_more(std::size_t bytes);

  const Tokenizer& tokenizer_;
  std::size_t piece_;
  std::vector<Known> known_;  // direct-mapped cache of encoded words; its size is a power of two
  Merger merger_;
  std::vector<Symbol> symbols_;  // tokens of the word, or part of a word, that is being merged
  std::vector<MergeTable::Merge> next_;
  /// Positions in the word of the bytes that were dropped because they have no token. Only set if
  /// Options::ranges is true.
  std::vector<std::uint32_t> dropped_;
  // normalized_: the result of the last normalization; rewritten_: the parts that it changed.
  std::string normalized_;
  std::vector<Rewritten> rewritten_;
  /// Position of the last normalized text in the whole text: the argument `begin` of normalize().
  std::size_t original_begin_ = 0;
  /// Index in rewritten_ at which original_range() starts its next search. All earlier
  /// entries end before the range of the last call, so later calls do not need them.
  std::size_t next_rewritten_ = 0;
  std::uint64_t dropped_bytes_ = 0;

  // All members from here on describe the text that is being encoded.
  Options options_;
  const Sink* sink_ = nullptr;
  std::vector<TokenId> ids_;  // the first count_ ids are not yet passed to the sink
  std::vector<ByteRange> ranges_;
  std::size_t count_ = 0;
};

}  // namespace longhand::nn
