#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace longhand {

/// The storage of a tensor's numbers in a GGUF file: in blocks of `block` numbers in `bytes` bytes.
struct GgufType {
  std::uint32_t code;
  std::string_view name;
  std::int64_t block;  // numbers
  std::size_t bytes;   // bytes of a block
  void (*decode)(const std::byte* block, float* numbers);
};

/// Supports F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K; null for other
/// codes.
const GgufType* gguf_type(std::uint32_t code);

/// Decodes numbers first, first + 1, ... of the blocks.
void decode_gguf(const GgufType& type, std::span<const std::byte> blocks, std::int64_t first,
                 std::span<double> numbers);

}  // namespace longhand
