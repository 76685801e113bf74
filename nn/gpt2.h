#pragma once

#include "nn/hugging_face.h"

/// Hugging Face's form of GPT-2. Matrices of the blocks are kept transposed there, [in, out]
/// (Conv1D); the output layer is the embedding unless the configuration says otherwise.
namespace longhand::nn {

Family gpt2_family();

}  // namespace longhand::nn
