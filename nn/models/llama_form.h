#pragma once

#include <string>
#include <vector>

#include "nn/models/hugging_face.h"

/// Code for the families whose Hugging Face form follows Llama: sequential blocks, RMS norms,
/// softmax heads with grouped keys and rotary positions, gated feed forwards, and Llama's parameter
/// names. The file of a family contains its differences.
namespace longhand::nn {

/// Reads all fields except biases and windows from config.json. Rotary positions are in rope_theta
/// and rope_scaling (transformers 4) or in rope_parameters (transformers 5).
DecoderConfig llama_config(const Fields& fields);
/// Changes `rope` as described by rope_parameters or rope_scaling, and returns it. If `parameters`
/// is null, nothing is changed.
RopeOptions rope_from(const Json* parameters, RopeOptions rope, std::string_view source);
Json rope_json(const RopeOptions& rope);
/// The window of each layer (0: none), from layer_types or from use_sliding_window and
/// max_window_layers.
std::vector<std::int64_t> windows_of(const Fields& fields, std::int64_t layers);

/// The fields of config.json except rotary positions and windows. Throws an Error that begins with
/// `family` if the model does not have Llama's form. Layers may differ only in windows and rotary
/// positions.
Json llama_json(const DecoderConfig& config, std::string_view family);
/// Adds the rotary positions, in the fields of both versions of transformers. Throws an Error if
/// layers have different rotary positions.
void add_rope(Json& json, const DecoderConfig& config, std::string_view family);
/// Adds layer_types and sliding_window. Returns the window, 0 if there is none.
std::int64_t add_windows(Json& json, const DecoderConfig& config, std::string_view family);
const SoftmaxHeads& heads_of(const DecoderConfig& config, std::int64_t layer);
/// All tensors of the model. The file stores the rows of the fused matrices as separate tensors:
/// query, key and value, and gate and up.
std::vector<Exchange> llama_tensors(const Decoder& decoder);
/// True if blocks are sequential, with gated feed forwards and rotary positions; norms and heads
/// may be any.
bool has_llama_blocks(const DecoderConfig& config);

}  // namespace longhand::nn
