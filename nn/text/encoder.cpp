#include "nn/text/encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "nn/text/hash.h"

namespace longhand::nn {
namespace {

// Minimum size of a block in bytes. A block is a part of the text that is processed at once.
constexpr std::size_t block_size = 1 << 16;

/// Splits texts into words for WordPattern::spaces (Gemma). A word ends between two bytes if no
/// merge can join them.
struct SpacesScanner {
  const JoinedBytes& joined;

  const char* word_end(const char* p, const char* end) const {
    do {
      ++p;
    } while (p != end && joined(p[-1], p[0]));
    return p;
  }
};

}  // namespace

Encoder::Encoder(const Tokenizer& tokenizer, std::size_t piece)
    : tokenizer_(tokenizer),
      piece_(std::max(piece, known_length)),
      known_(fewest_known_places, Known{}) {}

std::vector<TokenId> Encoder::encode(std::string_view text, Options options) {
  std::vector<TokenId> all;
  options.ranges = false;
  encode(text, options, [&](std::span<const TokenId> ids, std::span<const ByteRange>) {
    all.insert(all.end(), ids.begin(), ids.end());
  });
  return all;
}

void Encoder::encode(std::string_view text, Options options, Sink sink) {
  const std::size_t broken = find_broken_utf8(text);
  LONGHAND_CHECK(broken == std::string_view::npos, "broken UTF-8 at byte ", broken);
  remember_more(text.size());
  options_ = options;
  sink_ = &sink;
  count_ = 0;
  const TokenizerParts& parts = tokenizer_.parts();
  if (options.around) {
    for (const TokenId id : parts.before) put(id, {0, 0});
  }
  std::size_t done = 0;
  while (const auto match = tokenizer_.added().find(text, done)) {
    encode_between_added(text.substr(done, match->begin - done), done);
    put(match->id, {match->begin, match->end});
    done = match->end;
  }
  encode_between_added(text.substr(done), done);
  if (options.around) {
    for (const TokenId id : parts.after) put(id, {text.size(), text.size()});
  }
  flush();
}

/// Enlarges the cache of encoded words if this is useful for a text of `bytes` bytes.
void Encoder::remember_more(std::size_t bytes) {
  const std::size_t places =
      std::clamp(std::bit_ceil(bytes / 16 + 1), fewest_known_places, most_known_places);
  if (places > known_.size()) known_.assign(places, Known{});
}

void Encoder::encode_between_added(std::string_view text, std::size_t begin) {
  if (tokenizer_.added_late().empty()) {
    for (std::size_t done = 0; done < text.size();) {
      const std::size_t end = end_of_block(text, done);
      encode_block(normalize(text.substr(done, end - done), begin + done), 0);
      done = end;
    }
    return;
  }
  // The whole text is normalized at once, not in blocks. The tokens in added_late are searched for
  // in the normalized text, and such a token may cross the boundary between two blocks.
  const std::string_view normalized = normalize(text, begin);
  std::size_t done = 0;
  while (const auto match = tokenizer_.added_late().find(normalized, done)) {
    encode_normalized(normalized.substr(done, match->begin - done), done);
    put(match->id, original_range(match->begin, match->end));
    done = match->end;
  }
  encode_normalized(normalized.substr(done), done);
}

void Encoder::encode_normalized(std::string_view text, std::size_t begin) {
  for (std::size_t done = 0; done < text.size();) {
    const std::size_t end = end_of_block(text, done);
    encode_block(text.substr(done, end - done), begin + done);
    done = end;
  }
}

/// Returns the end of the block of text that starts at `begin`. The text can be split at this end,
/// because no word, merge or normalization crosses it.
std::size_t Encoder::end_of_block(std::string_view text, std::size_t begin) const {
  if (text.size() - begin <= 2 * block_size) return text.size();
  std::size_t at = begin + block_size;
  while (continues_utf8(text[at])) ++at;
  if (tokenizer_.byte_level()) {
    // In every byte-level word pattern, a letter ends a word if the next character is not a letter.
    bool after_letter = false;
    while (at < text.size()) {
      const CodePoint point = decode_utf8(text.data() + at);
      const bool letter = class_of(point.value) == CodeClass::letter;
      if (after_letter && !letter && attention_of(point.value) == 0) return at;
      after_letter = letter;
      at += point.length;
    }
    return text.size();
  }
  for (++at; at < text.size(); ++at) {
    const bool after_mark = text.substr(0, at).ends_with(space_mark);
    if (text[at] == ' ' && !after_mark && !tokenizer_.parts().joined(text[at - 1], ' ')) return at;
  }
  return text.size();
}

std::string_view Encoder::normalize(std::string_view text, std::size_t begin) {
  original_begin_ = begin;
  next_rewritten_ = 0;
  rewritten_.clear();
  return tokenizer_.parts().normalize(text, normalized_, options_.ranges ? &rewritten_ : nullptr);
}

ByteRange Encoder::original_range(std::size_t first, std::size_t last) {
  // original() maps a place in the normalized text to the original text. If normalization rewrote a
  // part of the text, every place inside this part is mapped to the start of the part in the
  // original text or, if `is_end` is true, to its end.
  std::size_t next = next_rewritten_;
  const auto original = [&](std::size_t place, bool is_end) {
    while (next < rewritten_.size() && rewritten_[next].end <= place) ++next;
    if (next < rewritten_.size() && rewritten_[next].begin < place + (is_end ? 0 : 1)) {
      return original_begin_ +
             (is_end ? rewritten_[next].original_end : rewritten_[next].original_begin);
    }
    if (next == 0) return original_begin_ + place;
    const Rewritten& before = rewritten_[next - 1];
    return original_begin_ + place - before.end + before.original_end;
  };
  const std::size_t begin = original(first, false);
  next_rewritten_ = next;
  return {begin, original(last, true)};
}

void Encoder::encode_block(std::string_view text, std::size_t begin) {
  const auto with = [&](const auto& scanner) {
    if (options_.ranges) {
      encode_words_with_ranges(text, begin, scanner);
    } else {
      encode_words(text, scanner);
    }
  };
  switch (tokenizer_.parts().pattern) {
    case WordPattern::gpt2:
      return with(Gpt2Scanner());
    case WordPattern::llama3:
      return with(Llama3Scanner<3>());
    case WordPattern::qwen2:
      return with(Llama3Scanner<1>());
    case WordPattern::digits_gpt2:
      return with(DigitsGpt2Scanner());
    case WordPattern::spaces:
      return with(SpacesScanner{tokenizer_.parts().joined});
  }
}

template <class Scanner>
void Encoder::encode_words(std::string_view block, const Scanner& scanner) {
  // Splits off up to 32 words before the first of them is encoded. set() prefetches the entry of
  // each word in known_, the cache of encoded words, so that the entries arrive before they are
  // read.
  std::array<Word, 32> words;
  const char* const end = block.data() + block.size();
  for (const char* p = block.data(); p != end;) {
    const char* const begin = p;
    std::size_t count = 0;
    std::string_view long_word;
    for (; p != end && count < words.size(); ++count) {
      const char* const word_end = scanner.word_end(p, end);
      const std::string_view word(p, static_cast<std::size_t>(word_end - p));
      if (is_long(word)) {
        long_word = word;
        break;
      }
      set(words[count], word, static_cast<std::size_t>(end - p));
      p = word_end;
    }
    make_room(3 * static_cast<std::size_t>(p - begin));
    TokenId* out = ids_.data() + count_;
    for (const Word& word : std::span(words).first(count)) out = encode_word(word, out);
    count_ = static_cast<std::size_t>(out - ids_.data());
    if (long_word.empty()) continue;
    each_part(long_word, [&](std::string_view) {
      for (const Symbol& symbol : symbols_) put(symbol.id, {});
    });
    p += long_word.size();
  }
}

/// Sets a word's text and its key in the cache of encoded words. `readable` is the number of bytes
/// from the start of the word that may be read. It may exceed the length of the word.
inline void Encoder::set(Word& word, std::string_view text, std::size_t readable) {
  word.text = text;
  word.known = nullptr;
  if (text.size() > known_length) return;
  // The first 31 bytes of the key are the word, padded with zeros. The last byte is the length of
  // the word.
  std::uint64_t(&key)[4] = word.key;
  key[0] = key[1] = key[2] = key[3] = 0;
  if (const std::size_t length = text.size(); length <= 16 && readable >= 16) {
    std::memcpy(key, text.data(), 16);
    key[0] &= ~std::uint64_t{0} >> (length < 8 ? 64 - 8 * length : 0);
    key[1] &= length <= 8 ? 0 : ~std::uint64_t{0} >> (128 - 8 * length);
  } else {
    std::memcpy(key, text.data(), length);
  }
  key[3] |= std::uint64_t{text.size()} << 56;
  std::uint64_t hash = hash_of(key[0], key[1] ^ key[3]);
  if (text.size() > 16) hash = hash_of(hash, key[2]);
  word.known = &known_[hash & (known_.size() - 1)];
  __builtin_prefetch(word.known);
}

inline TokenId* Encoder::encode_word(const Word& word, TokenId* out) {
  if (!word.known) return encode_unknown(word.text, out);
  Known& known = *word.known;
  if (std::memcmp(known.text, word.key, sizeof word.key) == 0) {
    std::memcpy(out, known.ids, sizeof known.ids);
    return out + known.count;
  }
  const std::uint64_t dropped = dropped_bytes_;
  TokenId* const after = encode_unknown(word.text, out);
  if (const auto count = after - out; count <= 7 && dropped == dropped_bytes_) {
    std::memcpy(known.text, word.key, sizeof word.key);
    std::copy(out, after, known.ids);
    known.count = static_cast<std::uint32_t>(count);
  }
  return after;
}

TokenId* Encoder::encode_unknown(std::string_view word, TokenId* out) {
  merge_word(word);
  for (const Symbol& symbol : symbols_) *out++ = symbol.id;
  return out;
}

void Encoder::merge_word(std::string_view word) {
  if (!is_whole(word)) merge_part(word);
}

/// True if the word is encoded as a single token without merging. symbols_ then contains this
/// token.
bool Encoder::is_whole(std::string_view word) {
  if (!tokenizer_.parts().whole_words) return false;
  const auto whole = tokenizer_.parts().tokens.find(word);
  if (!whole) return false;
  symbols_.assign(1, {*whole, 0});
  dropped_.clear();
  return true;
}

void Encoder::merge_part(std::string_view part) {
  LONGHAND_CHECK(part.size() <= 0xffffffff, "expected words of at most 4 GiB, got ", part.size(),
                 " bytes");
  symbols_.clear();
  dropped_.clear();
  add_symbols(part);
  find_merges(part);
  merger_.merge(tokenizer_.parts().merges, symbols_, next_);
}

/// Calls f for each part of a word. Only long words have several parts. During each call, symbols_
/// contains the tokens of the part.
template <class F>
void Encoder::each_part(std::string_view word, F f) {
  if (is_whole(word)) return f(word);
  if (!is_long(word)) {
    merge_part(word);
    return f(word);
  }
  for (const Part& part : parts_of(word)) {
    const std::string_view text = word.substr(part.begin, part.end - part.begin);
    merge_part(text);
    f(text);
  }
}

/// Cuts a long word into parts. The tokens of the parts, one part after another, are the tokens of
/// the whole word.
///
/// next_part() merges a part together with some text after it, and ends the part at one of the
/// resulting token boundaries. Almost always, the whole word has this boundary too. To make sure,
/// each pair of neighbouring parts L and R is tested: the text from the last token boundary inside
/// L (Part::tail) to the first token boundary inside R (Part::head) is merged alone. If the result
/// has a token boundary between L and R, the whole word has it too. Otherwise L and R are joined.
///
/// Proof: assume that all pairs pass the test, but that merges of the whole word cross ends of
/// parts. Let L and R be the parts that the first of these merges joins. Before this merge, L and R
/// are merged as if each were alone, so the boundaries `tail` and `head` still exist. The text
/// between `tail` and `head` then has the same tokens as at some time in the test. The test would
/// therefore apply the same merge, which is a contradiction.
std::vector<Encoder::Part> Encoder::parts_of(std::string_view word) {
  const std::uint64_t dropped = dropped_bytes_;
  std::vector<Part> parts;
  std::size_t length = piece_;
  for (std::size_t begin = 0; begin < word.size(); begin = parts.back().end) {
    parts.push_back(next_part(word, begin, length));
    length = piece_;
    while (parts.size() > 1 && !is_apart(word, parts.end()[-2], parts.back())) {
      const std::size_t end = parts.back().end;
      parts.pop_back();
      const std::size_t first = parts.back().begin;
      merge_part(word.substr(first, end - first));
      parts.back() = merged_part(word, first, end);
      // The next part is made about as long as the joined part. If the next part is joined as well,
      // the joined part becomes about twice as long. Many joins in a row therefore take only
      // O(n log n) for a word of n bytes.
      length = end - first;
    }
  }
  dropped_bytes_ = dropped;
  return parts;
}

/// The part of a long word that starts at `begin` and ends at a token boundary near begin + length.
Encoder::Part Encoder::next_part(std::string_view word, std::size_t begin, std::size_t length) {
  for (;; length *= 2) {
    std::size_t end = begin + std::min(length + length / 4, word.size() - begin);
    while (end < word.size() && continues_utf8(word[end])) ++end;
    merge_part(word.substr(begin, end - begin));
    if (end == word.size()) return merged_part(word, begin, end);
    std::size_t cut = 0;
    for (std::size_t i = 1; i < symbols_.size() && (cut == 0 || symbols_[i].begin <= length); ++i) {
      if (can_begin_part(word, begin + symbols_[i].begin)) cut = symbols_[i].begin;
    }
    if (cut != 0) return merged_part(word, begin, begin + cut);
  }
}

/// Describes the part [begin, end) of the word. Precondition: symbols_ contains the tokens of the
/// word from `begin` on, at least up to `end`. Tokens that begin at `end` or later are ignored.
Encoder::Part Encoder::merged_part(std::string_view word, std::size_t begin,
                                   std::size_t end) const {
  Part part{begin, end, end, begin};
  for (std::size_t i = 1; i < symbols_.size() && begin + symbols_[i].begin < end; ++i) {
    const std::size_t place = begin + symbols_[i].begin;
    if (!can_begin_part(word, place)) continue;
    part.head = std::min(part.head, place);
    part.tail = place;
  }
  return part;
}

bool Encoder::is_apart(std::string_view word, const Part& left, const Part& right) {
  merge_part(word.substr(left.tail, right.head - left.tail));
  const std::size_t boundary = right.begin - left.tail;
  return std::ranges::any_of(symbols_, [&](const Symbol& s) { return s.begin == boundary; });
}

/// True if a part of a long word may begin at `place`. With WordPattern::spaces, a part must not
/// begin inside a character. If the vocabulary has no token for a space, a part must not begin at a
/// space either: a space is then encoded as the three bytes of U+2581, whose tokens all have the
/// same Symbol::begin.
bool Encoder::can_begin_part(std::string_view word, std::size_t place) const {
  if (tokenizer_.byte_level()) return true;
  if (word[place] == ' ') return tokenizer_.character_token(" ").has_value();
  return !continues_utf8(word[place]);
}

/// Sets next_[i] to the merge of the symbols i and i + 1. The symbols are the tokens of the word so
/// far.
void Encoder::find_merges(std::string_view word) {
  const MergeTable& merges = tokenizer_.parts().merges;
  next_.resize(symbols_.size());
  for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) {
    const Symbol &left = symbols_[i], &right = symbols_[i + 1];
    const auto a = static_cast<unsigned char>(word[left.begin]);
    const auto b = static_cast<unsigned char>(word[right.begin]);
    next_[i] = tokenizer_.is_ascii(a, left.id) && tokenizer_.is_ascii(b, right.id)
                   ? tokenizer_.ascii_merge(a, b)
                   : merges.find(left.id, right.id);
  }
  if (!next_.empty()) next_.back() = MergeTable::none;
}

void Encoder::add_symbols(std::string_view word) {
  const auto add = [&](TokenId id, std::size_t begin) {
    symbols_.push_back({id, static_cast<std::uint32_t>(begin)});
  };
  if (tokenizer_.byte_level()) {
    for (std::size_t i = 0; i < word.size(); ++i) {
      const TokenId id = tokenizer_.byte_token(static_cast<unsigned char>(word[i]));
      if (id == Tokenizer::none) {
        ++dropped_bytes_;
        if (options_.ranges) dropped_.push_back(static_cast<std::uint32_t>(i));
      } else {
        add(id, i);
      }
    }
    return;
  }
  for (std::size_t i = 0; i < word.size();) {
    const std::size_t length = decode_utf8(word.data() + i).length;
    const std::string_view character = word.substr(i, length);
    if (const auto id = tokenizer_.character_token(character)) {
      add(*id, i);
    } else {
      const std::string_view spelled = character == " " ? space_mark : character;
      for (std::size_t k = 0; k < spelled.size(); ++k) {
        add(tokenizer_.byte_token(static_cast<unsigned char>(spelled[k])),
            i + std::min(k, length - 1));
      }
    }
    i += length;
  }
}

template <class Scanner>
void Encoder::encode_words_with_ranges(std::string_view block, std::size_t begin,
                                       const Scanner& scanner) {
  const char* const end = block.data() + block.size();
  for (const char* p = block.data(); p != end;) {
    const char* const word_end = scanner.word_end(p, end);
    each_part({p, static_cast<std::size_t>(word_end - p)}, [&](std::string_view part) {
      const std::size_t part_begin = begin + static_cast<std::size_t>(part.data() - block.data());
      for (std::size_t i = 0; i < symbols_.size(); ++i) {
        std::size_t last = i + 1 < symbols_.size() ? symbols_[i + 1].begin : part.size();
        while (std::ranges::binary_search(dropped_, last - 1)) --last;
        put(symbols_[i].id, original_range(part_begin + symbols_[i].begin, part_begin + last));
      }
    });
    p = word_end;
  }
}

void Encoder::put(TokenId id, ByteRange range) {
  make_room(1);
  ids_[count_] = id;
  if (options_.ranges) ranges_[count_] = range;
  ++count_;
}

/// Makes room in ids_ for `count` more ids and at least 7 spare ids. For a word that is in the
/// cache of encoded words, encode_word() always copies 7 ids, even if the word has fewer tokens.
void Encoder::make_room(std::size_t count) {
  if (count_ >= block_size / 4) flush();
  if (ids_.size() < count_ + count + 8) ids_.resize(2 * (count_ + count) + 8);
  if (options_.ranges && ranges_.size() < ids_.size()) ranges_.resize(ids_.size());
}

void Encoder::flush() {
  if (count_ == 0) return;
  (*sink_)(std::span(ids_).first(count_), std::span(ranges_).first(options_.ranges ? count_ : 0));
  count_ = 0;
}

}  // namespace longhand::nn
