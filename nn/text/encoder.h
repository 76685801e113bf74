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

/// Bytes [begin, end) of a text.
struct ByteRange {
  std::size_t begin, end;
  bool operator==(const ByteRange&) const = default;
};

/// Turns texts into the ids of their tokens: added tokens are found; the text between them is
/// normalized, cut into words, and each word is merged. The added tokens of TokenizerParts'
/// added_late are found after normalization. Words met often are remembered. An encoder changes as
/// it works: each thread has its own.
class Encoder {
 public:
  /// `piece`: about so many bytes of a word are merged at once, which bounds the memory that a word
  /// of any length takes. The tokens do not depend on it.
  explicit Encoder(const Tokenizer& tokenizer, std::size_t piece = std::size_t{1} << 16);

  struct Options {
    bool around = true;   // include the ids that the tokenizer puts before and after each text
    bool ranges = false;  // also return the bytes of the text that each token represents
  };
  /// Called with the next tokens, some ten thousand at a time; no ranges unless they are wanted.
  /// The ids around a text have empty ranges; where normalization rewrote a part of the text,
  /// tokens in it have the range of the whole part. Bytes that were dropped before or after a token
  /// are outside its range.
  using Sink = FunctionRef<void(std::span<const TokenId> ids, std::span<const ByteRange> ranges)>;

  /// Throws an Error with the place of the first byte that is not UTF-8, before anything is
  /// encoded.
  void encode(std::string_view text, Options options, Sink sink);
  std::vector<TokenId> encode(std::string_view text, Options options = {true, false});

  /// Number of bytes in all texts so far that were dropped because the vocabulary has no token for
  /// them.
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  /// A cached word of at most 31 bytes, with its length in the last byte of its key, and its
  /// tokens. Occupies one cache line.
  struct alignas(64) Known {
    std::uint64_t text[4];
    TokenId ids[7];
    std::uint32_t count;
  };
  static constexpr std::size_t known_length = 31;
  struct Word {
    std::string_view text;
    std::uint64_t key[4];  // see Known
    Known* known;          // its cache entry; null if it is too long
  };
  static constexpr std::size_t fewest_known_places = 1 << 10, most_known_places = 1 << 16;

  void encode_between_added(std::string_view text, std::size_t begin);
  /// `begin` is where the text of the first byte lies in the normalized text.
  void encode_normalized(std::string_view text, std::size_t begin);
  void encode_block(std::string_view block, std::size_t begin);
  template <class Scanner>
  void encode_words(std::string_view block, const Scanner& scanner);
  template <class Scanner>
  void encode_words_with_ranges(std::string_view block, std::size_t begin, const Scanner& scanner);
  /// The normalized text, to which original_range() then refers. `begin` is the text's place.
  std::string_view normalize(std::string_view text, std::size_t begin);
  /// Bytes of the text being encoded that bytes [first, last) of the normalized text stand for.
  /// Successive ranges ascend.
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
  /// Bytes [begin, end) of a long word that are merged by themselves. Its first tokens end at
  /// `head`, its last ones begin at `tail`: those that decide whether it joins its neighbours.
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
  std::vector<Known> known_;  // direct-mapped cache; its size is a power of two
  Merger merger_;
  std::vector<Symbol> symbols_;  // symbols of one word
  std::vector<MergeTable::Merge> next_;
  std::vector<std::uint32_t> dropped_;  // with ranges: places in the word whose byte has no token
  // The text that was normalized last.
  std::string normalized_;
  std::vector<Rewritten> rewritten_;
  std::size_t original_begin_ = 0;  // its place in the text being encoded
  std::size_t next_rewritten_ = 0;  // the first that ends after the last range's beginning
  std::uint64_t dropped_bytes_ = 0;

  // State of the text being encoded.
  Options options_;
  const Sink* sink_ = nullptr;
  std::vector<TokenId> ids_;  // the first count_ ids have not been passed to the sink
  std::vector<ByteRange> ranges_;
  std::size_t count_ = 0;
};

}  // namespace longhand::nn
