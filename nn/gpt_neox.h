#pragma once

#include "nn/hugging_face.h"

/// Hugging Face's form of GPT-NeoX. Names are those of our parameters. The rows of query_key_value
/// are laid out otherwise: theirs go head by head, each head's queries, keys and values together;
/// ours as HeadList says.
namespace longhand::nn {

Family gpt_neox_family();

/// Entry r: which row of Hugging Face's query_key_value is our row r.
std::vector<std::int64_t> gpt_neox_rows(const HeadList& heads);

}  // namespace longhand::nn
