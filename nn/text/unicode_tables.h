#pragma once

#include <cstddef>
#include <cstdint>

/// Tables of code points, written by unicode_tables.py; unicode.h and nfc.cpp read them. The value
/// of a code point c is value[256 block[c >> 8] + (c & 255)].
namespace longhand::nn::unicode_tables {

extern const std::uint8_t class_block[], class_value[];  // the numbers of CodeClass

/// 0: begins anew and stays as it is. 1 .. 254: a combining class. 255: combining class 0, but it
/// may combine with what stands before it or has a decomposition that NFC keeps.
extern const std::uint8_t attention_block[], attention_value[];

/// decomposed[i], ascending, becomes decomposition[decomposition_start[i]] up to that of i + 1.
extern const std::size_t decomposed_count;
extern const char32_t decomposed[], decomposition[];
extern const std::uint16_t decomposition_start[];

/// composed_pair[i] = first << 21 | second, ascending, becomes composition[i].
extern const std::size_t composition_count;
extern const std::uint64_t composed_pair[];
extern const char32_t composition[];

}  // namespace longhand::nn::unicode_tables
