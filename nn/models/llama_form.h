#pragma once

#include <string>
#include <vector>

#include "nn/models/hugging_face.h"

/// Code for the families whose Hugging Face form resembles Llama's: sequential blocks, RMS norms,
/// softmax heads with grouped keys and rotary positions, gated feed forwards, and Llama's parameter
/// names. The file of each family contains only what differs from Llama.
namespace longhand::nn {

/// Reads all fields of config.json except those of biases and windows. transformers 4 stores rotary
/// positions in rope_theta and rope_scaling, transformers 5 in rope_parameters.
DecoderConfig llama_config(const Fields& fields);
/// Returns `rope`, changed by the object `parameters`, which is the value of rope_parameters or
/// rope_scaling. If `parameters` is null, `rope` is not changed.
RopeOptions rope_from(const Json* parameters, RopeOptions rope, std::string_view source);
Json rope_json(const RopeOptions& rope);
/// The window of each layer (0: none), from layer_types or from use_sliding_window and
/// max_window_layers.
std::vector<std::int64_t> windows_of(const Fields& fields, std::int64_t layers);

/// All fields of config.json except those of rotary positions and windows. Throws an Error that
/// begins with `family` if the model does not have Llama's form. Layers may differ only in windows
/// and rotary positions.
Json llama_json(const DecoderConfig& config, std::string_view family);
/// Adds the fields of the rotary positions, for both versions of transformers. Throws an Error if
/// layers have different rotary positions.
void add_rope(Json& json, const DecoderConfig& config, std::string_view family);
/// Adds layer_types and sliding_window. Returns the window, 0 if there is none.
std::int64_t add_windows(Json& json, const DecoderConfig& config, std::string_view family);
const SoftmaxHeads& heads_of(const DecoderConfig& config, std::int64_t layer);
/// All tensors of the model. Our fused matrices contain the rows of query, key and value, or of
/// gate and up. The file stores each of these as a separate tensor.
std::vector<Exchange> llama_tensors(const Decoder& decoder);
/// True if blocks are sequential and have gated feed forwards and rotary positions. Any norms and
/// heads are allowed.
bool has_llama_blocks(const DecoderConfig& config);

}  // namespace longhand::nn
