#include "nn/text/nfc.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "nn/text/unicode.h"
#include "nn/text/unicode_tables.h"

namespace longhand::nn {
namespace {

using unicode_tables::Decomposition;

// The code point of a Hangul (Korean) syllable is computed from the indices of its lead consonant,
// its vowel and its tail consonant.
constexpr char32_t first_syllable = 0xac00, first_lead = 0x1100, first_vowel = 0x1161,
                   // The code point before the first tail consonant: tail index 0 means no tail.
    first_tail = 0x11a7;
constexpr char32_t leads = 19, vowels = 21, tails = 28, syllables = leads * vowels * tails;

/// Canonical combining class of a code point.
std::uint8_t combining(char32_t c) {
  const std::uint8_t attention = attention_of(c);
  return attention == attended ? 0 : attention;
}

void decompose(char32_t c, std::vector<char32_t>& out) {
  if (c - first_syllable < syllables) {
    const char32_t s = c - first_syllable, tail = s % tails;
    out.push_back(first_lead + s / (vowels * tails));
    out.push_back(first_vowel + s / tails % vowels);
    if (tail) out.push_back(first_tail + tail);
    return;
  }
  const auto all = unicode_tables::decompositions();
  const auto found = std::ranges::lower_bound(all, c, {}, &Decomposition::whole);
  if (found == all.end() || found->whole != c) {
    out.push_back(c);
    return;
  }
  decompose(found->first, out);
  if (found->second) out.push_back(found->second);  // the second part has no further decomposition
}

std::pair<char32_t, char32_t> parts_of(const Decomposition& d) { return {d.first, d.second}; }

/// All canonical decompositions that composition may reverse, sorted by their two parts.
const std::vector<Decomposition> compositions = [] {
  std::vector<Decomposition> all;
  std::ranges::copy_if(unicode_tables::decompositions(), std::back_inserter(all),
                       &Decomposition::is_composition);
  std::ranges::sort(all, {}, parts_of);
  return all;
}();

std::optional<char32_t> compose(char32_t first, char32_t second) {
  if (first - first_lead < leads && second - first_vowel < vowels) {
    return first_syllable + ((first - first_lead) * vowels + (second - first_vowel)) * tails;
  }
  if (first - first_syllable < syllables && (first - first_syllable) % tails == 0 &&
      second - first_tail - 1 < tails - 1) {
    return first + (second - first_tail);
  }
  const std::pair parts(first, second);
  const auto found = std::ranges::lower_bound(compositions, parts, {}, parts_of);
  if (found == compositions.end() || parts_of(*found) != parts) return std::nullopt;
  return found->whole;
}

/// Sorts the combining marks that follow each base character by their combining class. The sort is
/// stable.
void sort_marks(std::vector<char32_t>& points) {
  for (auto begin = points.begin(); begin != points.end();) {
    begin = std::find_if(begin, points.end(), combining);
    const auto end = std::find_if_not(begin, points.end(), combining);
    std::stable_sort(begin, end,
                     [](char32_t a, char32_t b) { return combining(a) < combining(b); });
    begin = end;
  }
}

/// Composes each code point with the last base character before it. The two are composed only if
/// Unicode has a composition of them, and if all remaining marks between them have lower combining
/// classes.
void compose_all(std::vector<char32_t>& points) {
  std::size_t kept = 0, base = 0;
  bool has_base = false;
  int last = -1;  // combining class of the previous mark; -1 directly after the base
  for (const char32_t c : points) {
    const int mark = combining(c);
    if (has_base && last < mark) {
      if (const auto whole = compose(points[base], c)) {
        points[base] = *whole;
        continue;
      }
    }
    if (mark == 0) {
      base = kept;
      has_base = true;
      last = -1;
    } else {
      last = mark;
    }
    points[kept++] = c;
  }
  points.resize(kept);
}

std::string normal_form(std::string_view text) {
  std::vector<char32_t> points;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text.data() + at);
    decompose(point.value, points);
    at += point.length;
  }
  sort_marks(points);
  compose_all(points);
  std::string out;
  for (const char32_t c : points) append_utf8(out, c);
  return out;
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& buffer,
                        std::vector<Rewritten>* changes) {
  if (changes) changes->clear();
  buffer.clear();
  bool changed = false;
  std::size_t copied = 0;  // number of bytes of the text that are already copied
  std::size_t base = 0;    // position of the last code point that combines with no earlier one
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<signed char>(text[at]) >= 0) {
      base = at++;
      continue;
    }
    const CodePoint point = decode_utf8(text.data() + at);
    if (attention_of(point.value) == 0) {
      base = at;
      at += point.length;
      continue;
    }
    // The text from position `base` up to the next code point that combines with no earlier one is
    // normalized separately.
    std::size_t end = at;
    while (end < text.size()) {
      const CodePoint next = decode_utf8(text.data() + end);
      if (attention_of(next.value) == 0) break;
      end += next.length;
    }
    const std::string_view before = text.substr(base, end - base);
    const std::string after = normal_form(before);
    if (after != before) {
      buffer += text.substr(copied, base - copied);
      if (changes) changes->push_back({buffer.size(), buffer.size() + after.size(), base, end});
      changed = true;
      buffer += after;
      copied = end;
    }
    base = at = end;
  }
  if (!changed) return text;
  buffer += text.substr(copied);
  return buffer;
}

}  // namespace longhand::nn
