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
  const GgufType* type = nullptr;        // type of the matrices; vectors and positions are F32
  const Tokenizer* tokenizer = nullptr;  // null: the file contains no tokenizer
  std::string chat_template = {};        // text in the language Jinja; empty: none
  TextTokens tokens = {};
};

/// Writes a model as a GGUF file, which gguf.h and llama.cpp read, and returns the name of its
/// architecture. The file appears completely or not at all. Throws an Error if GGUF files cannot
/// represent the model or its tokenizer. Low-rank products must be merged first.
std::string_view export_gguf(const Decoder& decoder, const std::filesystem::path& file,
                             const GgufContents& contents);

}  // namespace longhand::nn
