#pragma once

#include <memory>
#include <string>

#include "core/gguf_file.h"
#include "core/json.h"
#include "nn/models/weights.h"

namespace longhand::nn {

/// These functions convert a GGUF file of a llama, qwen2 or gemma3 model to Hugging Face's form.

/// Returns the config.json of the model in a GGUF file.
Json gguf_config(const GgufFile& file);
/// Returns the tokenizer.json of the model in a GGUF file. Supported tokenizers are those with
/// byte-level merges and Gemma's.
std::string gguf_tokenizer(const GgufFile& file);
/// Returns the tensors of a GGUF file under Hugging Face's names. GGUF files permute the rows of
/// queries and keys of llama models, and add 1 to the norm weights of Gemma models. Reading
/// reverses both changes.
std::unique_ptr<Weights> gguf_weights(GgufFile file);

}  // namespace longhand::nn
