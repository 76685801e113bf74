#pragma once

#include <cstdint>
#include <span>

/// What Unicode says of code points, in ascending order; written by unicode_tables.py.
namespace longhand::nn::unicode_tables {

/// The code points first .. last.
struct CodePointRange {
  char32_t first, last;
  std::uint8_t combining_class = 0;
};
std::span<const CodePointRange> letters();
std::span<const CodePointRange> numbers();
std::span<const CodePointRange> spaces();
std::span<const CodePointRange> combining_classes();  // those other than 0

/// The first step of a canonical decomposition. Hangul has none here: its syllables are computed.
struct Decomposition {
  char32_t whole, first, second = 0;  // second: 0 where the whole is another name of the first
  bool composes = true;               // false: normalization leaves the two parts apart

  bool is_composition() const { return second != 0 && composes; }
};
std::span<const Decomposition> decompositions();

}  // namespace longhand::nn::unicode_tables
