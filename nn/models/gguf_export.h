#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/gguf_blocks.h"
#include "nn/models/hugging_face.h"
#include "nn/text/tokenizer.h"

namespace longhand::nn {

/// The contents of a GGUF file besides the model's weights.
struct GgufContents {
  const GgufType* type = nullptr;  // type of the matrices (stored_type); vectors, positions: F32
  const Tokenizer* tokenizer = nullptr;  // null: the file contains no tokenizer
  std::string chat_template = {};        // text in the language Jinja; empty: none
  TextTokens tokens = {};
};

/// The type in which export_gguf() stores a matrix of `row_length` columns. It is `wanted`, with
/// one exception: Q8_0 replaces a type with blocks of 256 numbers if the row length is a multiple
/// of 32, but not of 256.
const GgufType& stored_type(const GgufType& wanted, std::int64_t row_length);

/// The result of export_gguf().
struct ExportedGguf {
  std::string_view architecture;
  std::int64_t matrices = 0;  // number of matrices, without position embeddings
  std::int64_t replaced = 0;  // number of matrices whose type is not the requested one
};

/// Writes a model as a GGUF file, which gguf.h and llama.cpp read. The file appears completely or
/// not at all. Throws an Error if GGUF files cannot represent the model or its tokenizer. Low-rank
/// products must be merged first.
ExportedGguf export_gguf(const Decoder& decoder, const std::filesystem::path& file,
                         const GgufContents& contents);

}  // namespace longhand::nn
