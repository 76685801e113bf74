#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "nn/models/hugging_face.h"

/// What LoRA added to a model, in the form of the Python package peft: a folder with
/// adapter_config.json and adapter_model.safetensors, to be put onto the model that it belongs to.
namespace longhand::nn {

/// The matrices under peft's names. An Error where a projection is only a part of a tensor there,
/// as GPT-2's queries are.
std::vector<Exchange> adapter_tensors(const Decoder& decoder);

/// Returns the model's family.
std::string_view export_adapter(const Decoder& decoder, const std::filesystem::path& folder);

}  // namespace longhand::nn
