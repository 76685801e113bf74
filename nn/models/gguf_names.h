#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Names and layouts of the tensors in GGUF files, for reading (nn/models/gguf.h) and writing
/// (nn/models/gguf_export.h).
namespace longhand::nn {

/// The model families whose GGUF files are supported.
enum class GgufKind { llama, qwen2, gemma3, gpt2 };
/// The family with this general.architecture. No value if it is not supported.
std::optional<GgufKind> gguf_kind(std::string_view architecture);
std::string_view architecture_of(GgufKind kind);

/// The name of a tensor in a GGUF file, and how the file's values differ from Hugging Face's.
struct GgufTensorName {
  std::string name;
  bool paired = false;      // rows of the two halves of each head alternate in the file
  bool plus_one = false;    // the file contains the weights plus 1
  bool transposed = false;  // Hugging Face's matrix is [in, out], and the file's is [out, in]
};
/// Converts Hugging Face's name of a tensor. No value if files of this family have no such tensor.
std::optional<GgufTensorName> gguf_tensor_name(std::string_view theirs, GgufKind kind);

/// Returns the row of the file that contains row `row` of Hugging Face's tensor, if the tensor is
/// `paired`. Each head has 2 * half rows. In Hugging Face's order, the first half of them (s = 0)
/// comes before the second half (s = 1), so row i of half s has the index s * half + i in the head.
/// In the file, the rows of the two halves alternate, so the same row has the index 2 * i + s in
/// the head.
inline std::int64_t paired_row(std::int64_t row, std::int64_t half) {
  const std::int64_t head = row / (2 * half), s = row % (2 * half) / half, i = row % half;
  return head * 2 * half + 2 * i + s;
}

/// The GGUF keys whose values are tokens that end something: a text, a turn of a conversation, or a
/// message.
inline constexpr std::array<const char*, 3> gguf_end_keys{
    "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};

/// Codes of tokenizer.ggml.token_type.
namespace gguf_token {
inline constexpr std::int32_t normal = 1, control = 3, by_user = 4, unused = 5, byte = 6;
}

/// The value of tokenizer.ggml.model in files without a tokenizer.
inline constexpr std::string_view gguf_no_tokenizer = "no_vocab";

}  // namespace longhand::nn
