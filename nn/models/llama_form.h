#pragma once

#include <string>
#include <vector>

#include "nn/models/hugging_face.h"

/// Shared by the families that follow Llama in Hugging Face's form: sequential blocks, RMS norms,
/// softmax heads with grouped keys and rotary positions, gated feed forwards, and the names of
/// parameters. Each family adds its differences.
namespace longhand::nn {

/// Reads sizes and rotary positions from config.json. Version 4 has rope_theta and rope_scaling,
/// version 5 rope_parameters. The family reads the biases itself.
DecoderConfig llama_config(const Fields& fields);
/// The rotary positions described by rope_parameters or rope_scaling. If they are null, `rope` is
/// returned unchanged.
RopeOptions rope_from(const Json* parameters, RopeOptions rope, std::string_view source);
Json rope_json(const RopeOptions& rope);
/// The window of each layer (0: none), from layer_types or from use_sliding_window and
/// max_window_layers.
std::vector<std::int64_t> windows_of(const Fields& fields, std::int64_t layers);

/// The fields of config.json except rotary positions and windows. Throws an Error that begins with
/// `family` if the model does not have Llama's form; layers may differ in windows and rotary
/// positions.
Json llama_json(const DecoderConfig& config, std::string_view family);
/// Adds the rotary positions in the fields of both versions of the format. Throws an Error if they
/// differ between layers.
void add_rope(Json& json, const DecoderConfig& config, std::string_view family);
/// Adds layer_types and sliding_window. Returns the window, 0 if there is none.
std::int64_t add_windows(Json& json, const DecoderConfig& config, std::string_view family);
const SoftmaxHeads& heads_of(const DecoderConfig& config, std::int64_t layer);
/// All tensors of the model. The fused projection and the feed forward's fused matrices are
/// separate tensors in the file.
std::vector<Exchange> llama_tensors(const Decoder& decoder);
/// True if all blocks are gated, sequential and rotary, with any norms and heads.
bool has_llama_blocks(const DecoderConfig& config);

}  // namespace longhand::nn
