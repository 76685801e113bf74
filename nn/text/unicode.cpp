#include "nn/text/unicode.h"

#include <algorithm>
#include <utility>

#include "nn/text/unicode_tables.h"

namespace longhand::nn {
namespace {

constexpr std::size_t all_code_points = 0x110000;

std::vector<CodeClass> classes_of_all() {
  std::vector<CodeClass> all(all_code_points, CodeClass::other);
  for (const auto& [ranges, code_class] : {std::pair{unicode_tables::letters(), CodeClass::letter},
                                           {unicode_tables::numbers(), CodeClass::number},
                                           {unicode_tables::spaces(), CodeClass::space}}) {
    for (const auto& range : ranges) {
      std::fill(all.begin() + range.first, all.begin() + range.last + 1, code_class);
    }
  }
  return all;
}

std::vector<std::uint8_t> attention_of_all() {
  std::vector<std::uint8_t> all(all_code_points);
  for (const auto& range : unicode_tables::combining_classes()) {
    std::fill(all.begin() + range.first, all.begin() + range.last + 1, range.combining_class);
  }
  const auto attend = [&all](char32_t c) {
    if (all[c] == 0) all[c] = attended;
  };
  for (const auto& decomposition : unicode_tables::decompositions()) {
    attend(decomposition.is_composition() ? decomposition.second : decomposition.whole);
  }
  for (char32_t vowel = 0x1161; vowel <= 0x1175; ++vowel) attend(vowel);  // Hangul vowels
  for (char32_t tail = 0x11a8; tail <= 0x11c2; ++tail) attend(tail);
  return all;
}

}  // namespace

const std::vector<CodeClass>& code_classes() {
  static const std::vector<CodeClass> all = classes_of_all();
  return all;
}

const std::vector<std::uint8_t>& code_attention() {
  static const std::vector<std::uint8_t> all = attention_of_all();
  return all;
}

}  // namespace longhand::nn
