#pragma once

#include <string>
#include <vector>

#include "nn/models/hugging_face.h"

/// Code for the families whose Hugging Face form resembles Llama's: sequential blocks, RMS norms,
/// softmax heads with grouped keys and rotary positions, gated feed forwards, and Llama's parameter
/// names. The file of each family contains only what differs from Llama.
namespace longhand::nn {

/// Converts config.json to a model configuration. Does not read the fields about biases and
/// attention windows. Rotary positions are read from rope_theta and rope_scaling (written by
/// version 4 of the Python package transformers) or from rope_parameters (written by version 5).
DecoderConfig llama_config(const Fields& fields);
/// Returns the options `rope` with the changes that `parameters` contains. `parameters` is the
/// object rope_parameters or rope_scaling of config.json. If it is null, returns `rope` unchanged.
RopeOptions rope_from(const Json* parameters, RopeOptions rope, std::string_view source);
Json rope_json(const RopeOptions& rope);
/// The attention window of each layer (0: no window). It is read from layer_types or, if this field
/// is missing, from use_sliding_window and max_window_layers.
std::vector<std::int64_t> windows_of(const Fields& fields, std::int64_t layers);

/// Returns all fields of config.json except those about rotary positions and attention windows.
/// Throws an Error that begins with `family` if the model does not have Llama's form. The model's
/// layers may differ only in attention windows and rotary positions.
Json llama_json(const DecoderConfig& config, std::string_view family);
/// Adds the fields about rotary positions to `json`, a config.json. The fields of versions 4 and 5
/// of the Python package transformers are added. Throws an Error if layers have different rotary
/// positions.
void add_rope(Json& json, const DecoderConfig& config, std::string_view family);
/// Adds the fields layer_types and sliding_window to `json`, a config.json. Returns the size of the
/// attention window, or 0 if no layer has a window.
std::int64_t add_windows(Json& json, const DecoderConfig& config, std::string_view family);
const SoftmaxHeads& heads_of(const DecoderConfig& config, std::int64_t layer);
/// All tensors of the model, with their published names. Our fused matrices contain the rows of
/// query, key and value, or of gate and up. The published file stores query, key, value, gate and
/// up as separate tensors.
std::vector<Exchange> llama_tensors(const Decoder& decoder);
/// True if blocks are sequential and have gated feed forwards and rotary positions. Any norms and
/// heads are allowed.
bool has_llama_blocks(const DecoderConfig& config);

}  // namespace longhand::nn
