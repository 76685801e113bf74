#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/safetensors.h"
#include "nn/decoder.h"

/// Hugging Face's form of GPT-NeoX: config.json and model.safetensors in a folder. Names are those
/// of our parameters. The rows of query_key_value are laid out otherwise: theirs go head by head,
/// each head's queries, keys and values together; ours as HeadList says.
namespace longhand::nn {

/// `source` is what messages call the text.
DecoderConfig gpt_neox_config(std::string_view json, std::string_view source);
/// Error where the model has no such form: heads of other kinds or unequal widths, several outputs.
std::string gpt_neox_json(const DecoderConfig& config);

/// Copies the parameters out of a file, whatever else it holds; f64, f32 or bf16 there.
void read_gpt_neox(const SafetensorsFile& file, const Decoder& decoder);

std::unique_ptr<Decoder> import_gpt_neox(const std::filesystem::path& folder, Backend& backend,
                                         DType type = DType::f32);
void export_gpt_neox(const Decoder& decoder, const std::filesystem::path& folder);

/// Entry r: which row of Hugging Face's query_key_value is our row r.
std::vector<std::int64_t> gpt_neox_rows(const HeadList& heads);

}  // namespace longhand::nn
