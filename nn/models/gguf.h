#pragma once

#include <memory>
#include <string>

#include "core/gguf_file.h"
#include "core/json.h"
#include "nn/models/weights.h"

namespace longhand::nn {

/// What a GGUF file of a llama, qwen2 or gemma3 model says, in Hugging Face's form.

/// Its config.json.
Json gguf_config(const GgufFile& file);
/// Its tokenizer.json: of models with byte-level merges, and of Gemma.
std::string gguf_tokenizer(const GgufFile& file);
/// Its tensors under Hugging Face's names. GGUF has the rows of a llama's queries and keys in
/// another order, and norms of Gemma with the 1 added: both are undone.
std::unique_ptr<Weights> gguf_weights(GgufFile file);

}  // namespace longhand::nn
