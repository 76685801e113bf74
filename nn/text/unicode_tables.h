#pragma once

#include <cstdint>
#include <span>

/// Properties of code points as defined by Unicode. Each table is in ascending order of code
/// points. unicode_tables.py generates the tables.
namespace longhand::nn::unicode_tables {

/// The code points first .. last.
struct CodePointRange {
  char32_t first, last;
  std::uint8_t combining_class = 0;
};
std::span<const CodePointRange> letters();
std::span<const CodePointRange> numbers();
std::span<const CodePointRange> spaces();
std::span<const CodePointRange> combining_classes();  // only classes other than 0

/// The first step of a canonical decomposition: `whole` becomes `first` and `second`.
/// Decompositions of Hangul syllables are computed and not listed.
struct Decomposition {
  char32_t whole, first, second = 0;  // second is 0 if there is no second part
  bool composes = true;               // false: normalization does not compose the two parts

  bool is_composition() const { return second != 0 && composes; }
};
std::span<const Decomposition> decompositions();

}  // namespace longhand::nn::unicode_tables
