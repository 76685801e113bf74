#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "nn/models/hugging_face.h"

/// Writes the low-rank products of a model in the form of the Python package peft: a folder with
/// adapter_config.json and adapter_model.safetensors. peft applies them to the original model.
namespace longhand::nn {

/// The low-rank matrices under peft's names. Throws an Error if a projection is only a part of a
/// published tensor, as the queries of GPT-2 are.
std::vector<Exchange> adapter_tensors(const Decoder& decoder);

/// Writes the folder. Returns the name of the model's family.
std::string_view export_adapter(const Decoder& decoder, const std::filesystem::path& folder);

}  // namespace longhand::nn
