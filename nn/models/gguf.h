#pragma once

#include <memory>
#include <string>

#include "core/gguf_file.h"
#include "core/json.h"
#include "nn/models/weights.h"

namespace longhand::nn {

/// These functions convert a GGUF file of a llama, qwen2, gemma3 or gpt2 model to Hugging Face's
/// form.

/// Returns the config.json of the model in a GGUF file.
Json gguf_config(const GgufFile& file);
/// Returns the tokenizer.json of the model in a GGUF file. Supported tokenizers are those with
/// byte-level merges and Gemma's.
std::string gguf_tokenizer(const GgufFile& file);
/// Returns the tensors of a GGUF file under Hugging Face's names. GGUF files permute the rows of
/// queries and keys of llama models, add 1 to the norm weights of Gemma models, and transpose the
/// matrices in the blocks of GPT-2. Reading reverses these changes.
std::unique_ptr<Weights> gguf_weights(std::shared_ptr<const GgufFile> file);

}  // namespace longhand::nn
