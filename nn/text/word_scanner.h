#pragma once

#include <optional>
#include <string_view>

#include "nn/text/unicode.h"

/// Splits texts into words. A tokenizer processes each word separately. Tokenizers define words by
/// a regular expression. For each known expression, there is a hand-written scanner, which reads
/// each character only a few times. A scanner's word_end(p, end) returns the end of the word that
/// begins at p < end.
namespace longhand::nn {

enum class WordPattern {
  /// Words of GPT-2. L, N and S stand for letters, numbers and spaces (\p{L}, \p{N}, \s):
  ///   's|'t|'re|'ve|'m|'ll|'d| ?L+| ?N+| ?[^SLN]+|S+(?!\S)|S+
  gpt2,
  /// Words of Llama 3. L, N and S stand for letters, numbers and spaces (\p{L}, \p{N}, \s):
  ///   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nLN]?L+|N{1,3}| ?[^SLN]+[\r\n]*|S*[\r\n]+|S+(?!\S)|S+
  llama3,
  qwen2,        // like llama3, but each digit is a word (\p{N} instead of \p{N}{1,3})
  digits_gpt2,  // each digit (\p{N}) is a word; other text is split as by gpt2
  /// Gemma: a word ends between two bytes if no merge can join them (SpacesScanner in encoder.cpp)
  spaces,
};

/// The pattern with this regular expression. No value unless the text equals a known expression
/// exactly.
std::optional<WordPattern> known_pattern(std::string_view expression);
/// The inverse of known_pattern(). Empty for patterns that are not a single expression.
std::string_view regular_expression(WordPattern pattern);
std::string_view name_of(WordPattern pattern);
std::optional<WordPattern> pattern_named(std::string_view name);

/// The end of the run of code points of class `wanted` that begins at p.
inline const char* end_of_run(CodeClass wanted, const char* p, const char* end) {
  while (p != end) {
    const std::uint8_t known = byte_classes[static_cast<unsigned char>(*p)];
    if (known == static_cast<std::uint8_t>(wanted)) {
      ++p;
      continue;
    }
    if (known != beyond) break;
    const CodePoint point = decode_utf8(p);
    if (class_of(point.value) != wanted) break;
    p += point.length;
  }
  return p;
}

/// The start of the code point that ends at p.
inline const char* code_point_before(const char* p) {
  do {
    --p;
  } while (continues_utf8(*p));
  return p;
}

/// Returns the end of a word that matches \s+(?!\S)|\s+ at p. [p, run_end) is a run of white space.
/// The word contains the whole run if the text ends with the run or if the run has only one
/// character. Otherwise the word does not contain the last character of the run.
inline const char* end_of_spaces(const char* p, const char* run_end, const char* end) {
  if (run_end == end) return end;
  const char* const last = code_point_before(run_end);
  return last == p ? run_end : last;
}

/// The end of a contraction ('s 't 're 've 'm 'll 'd) whose apostrophe is at p. Null if there is no
/// contraction at p.
template <bool any_case>
const char* end_of_contraction(const char* p, const char* end) {
  const auto letter = [&](std::ptrdiff_t i) -> char {
    if (end - p <= i) return 0;
    const char c = p[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return p + 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? p + 3 : nullptr;
    case 'l':
      return letter(2) == 'l' ? p + 3 : nullptr;
    default:
      // If case is ignored, the long s (U+017F, in UTF-8 the bytes C5 BF) counts as an s.
      return any_case && letter(1) == '\xc5' && letter(2) == '\xbf' ? p + 3 : nullptr;
  }
}

struct Gpt2Scanner {
  static const char* word_end(const char* p, const char* end) {
    if (*p == '\'') {
      if (const char* const contraction = end_of_contraction<false>(p, end)) return contraction;
    }
    const char* start = p;
    ClassedCodePoint first = class_at(p);
    if (*p == ' ' && end - p > 1) {
      const ClassedCodePoint second = class_at(p + 1);
      if (second.value != CodeClass::space) {
        first = second;
        ++start;
      }
    }
    const char* const run_end = end_of_run(first.value, start + first.length, end);
    return first.value == CodeClass::space ? end_of_spaces(p, run_end, end) : run_end;
  }
};

/// The scanner of Llama 3 (digits = 3) and Qwen 2 (digits = 1). `digits` is the maximum number of
/// digits of a word.
template <int digits>
struct Llama3Scanner {
  static const char* word_end(const char* p, const char* end) {
    if (*p == '\'') {
      if (const char* const contraction = end_of_contraction<true>(p, end)) return contraction;
    }
    const ClassedCodePoint first = class_at(p);
    const char* const after = p + first.length;
    if (first.value == CodeClass::letter) return end_of_run(CodeClass::letter, after, end);
    if (first.value == CodeClass::number) {
      const char* q = after;
      for (int count = 1; count < digits && q != end; ++count) {
        const ClassedCodePoint next = class_at(q);
        if (next.value != CodeClass::number) break;
        q += next.length;
      }
      return q;
    }
    const auto line_break = [](char c) { return c == '\r' || c == '\n'; };
    if (after != end && !line_break(*p)) {
      const ClassedCodePoint second = class_at(after);
      if (second.value == CodeClass::letter) {
        return end_of_run(CodeClass::letter, after + second.length, end);
      }
      if (*p == ' ' && second.value == CodeClass::other) {
        return with_line_breaks(after + second.length, end);
      }
    }
    if (first.value == CodeClass::other) return with_line_breaks(after, end);
    const char* const run_end = end_of_run(CodeClass::space, after, end);
    // Searches for the last line break byte by byte. This is possible because no byte of a
    // white-space character of several bytes is equal to a line break.
    for (const char* q = run_end; q != p; --q) {
      if (line_break(q[-1])) return q;
    }
    return end_of_spaces(p, run_end, end);
  }

 private:
  /// The end of the match of [^\s\p{L}\p{N}]*[\r\n]* that begins at p.
  static const char* with_line_breaks(const char* p, const char* end) {
    p = end_of_run(CodeClass::other, p, end);
    while (p != end && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }
};

struct DigitsGpt2Scanner {
  static const char* word_end(const char* p, const char* end) {
    const ClassedCodePoint first = class_at(p);
    if (first.value == CodeClass::number) return p + first.length;
    // The text between two numbers is split as if it were the whole text. White space before a
    // number therefore forms one word.
    if (first.value == CodeClass::space) {
      const char* const run_end = end_of_run(CodeClass::space, p + first.length, end);
      if (run_end == end || class_at(run_end).value == CodeClass::number) return run_end;
    }
    return Gpt2Scanner::word_end(p, end);
  }
};

}  // namespace longhand::nn
