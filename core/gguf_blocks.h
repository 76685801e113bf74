#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace longhand {

/// An element type of GGUF files, which store numbers in blocks.
struct GgufType {
  std::uint32_t code;
  std::string_view name;
  std::int64_t block;  // numbers per block
  std::size_t bytes;   // bytes per block
  void (*decode)(const std::byte* block, float* numbers);
};

/// Returns the element type with this code if it is F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0,
/// Q5_1, Q4_K, Q5_K or Q6_K, otherwise null.
const GgufType* gguf_type(std::uint32_t code);

/// Decodes numbers.size() numbers. The first of them has the index `first` among all numbers of the
/// blocks.
void decode_gguf(const GgufType& type, std::span<const std::byte> blocks, std::int64_t first,
                 std::span<double> numbers);

}  // namespace longhand
