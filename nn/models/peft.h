#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "nn/models/hugging_face.h"

/// Writes the LoRA adapters of a model in the format of the Python package peft: a folder with
/// adapter_config.json and adapter_model.safetensors. peft adds the adapters to the original model.
namespace longhand::nn {

/// The two low-rank matrices of every LoRA adapter, with the names that peft gives them. Throws an
/// Error if an adapter changes only a part of a published tensor. For example, GPT-2 has no
/// separate tensor for the projection to queries.
std::vector<Exchange> adapter_tensors(const Decoder& decoder);

/// Writes adapter_config.json and adapter_model.safetensors to `folder`. Returns the name of the
/// model's family, such as "llama".
std::string_view export_adapter(const Decoder& decoder, const std::filesystem::path& folder);

}  // namespace longhand::nn
