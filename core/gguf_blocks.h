#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace longhand {

/// An element type of GGUF files, which store numbers in blocks.
struct GgufType {
  std::uint32_t code;
  std::string_view name;
  std::int64_t block;  // numbers per block
  std::size_t bytes;   // bytes per block
  void (*decode)(const std::byte* block, float* numbers);
  /// Rounds the numbers of one block to this type and stores them. Null for types that can only be
  /// read.
  void (*encode)(const float* numbers, std::byte* block) = nullptr;
};

/// Returns the element type with this code if it is F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0,
/// Q5_1, Q4_K, Q5_K or Q6_K, otherwise null.
const GgufType* gguf_type(std::uint32_t code);
/// Returns the type with this lower-case name, such as q8_0, or null.
const GgufType* gguf_type(std::string_view name);
/// The types that store numbers in blocks with a factor, such as Q8_0.
std::span<const GgufType* const> block_types();
/// Returns the type with this lower-case name, such as q8_0. Returns null if there is no such type
/// or if it can only be read.
const GgufType* written_gguf_type(std::string_view name);
/// The names of the types that can be written: "f32, f16, ...".
std::string written_gguf_types();
/// The name of a type in lower case, such as q8_0.
std::string small_name(const GgufType& type);

/// Decodes numbers.size() numbers. The first of them has the index `first` among all numbers of the
/// blocks.
void decode_gguf(const GgufType& type, std::span<const std::byte> blocks, std::int64_t first,
                 std::span<double> numbers);

/// Rounds numbers to a type that can be written. Their number must be a multiple of the numbers in
/// a block. F32 and BF16 also store infinity and NaN. For F16, throws an Error if a number is not
/// finite in f16. For types with a factor per block, throws an Error if a number is not finite or
/// if the factor is not finite in f16.
void encode_gguf(const GgufType& type, std::span<const double> numbers,
                 std::span<std::byte> blocks);

}  // namespace longhand
