#pragma once

#include <memory>
#include <string>

#include "core/gguf_file.h"
#include "core/json.h"
#include "nn/models/weights.h"

namespace longhand::nn {

/// Converts a GGUF file of a llama, qwen2 or gemma3 model to Hugging Face's form.

/// The model's config.json.
Json gguf_config(const GgufFile& file);
/// The model's tokenizer.json. Supports byte-level merges and Gemma's tokenizer.
std::string gguf_tokenizer(const GgufFile& file);
/// The model's tensors under Hugging Face's names. In a GGUF file, the rows of a llama's queries
/// and keys are permuted, and 1 is added to the norm weights of Gemma. Reading reverses both
/// changes.
std::unique_ptr<Weights> gguf_weights(GgufFile file);

}  // namespace longhand::nn
