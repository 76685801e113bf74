#pragma once

#include <string>
#include <vector>

#include "nn/models/hugging_face.h"

/// Shared by the families that follow Llama in Hugging Face's format: sequential blocks, RMS norms,
/// softmax heads with grouped keys and rotary positions, gated feed forwards, the names of
/// parameters. Each family states its differences.
namespace longhand::nn {

/// Reads sizes and rotary positions from either form of config.json: version 4 has rope_theta and
/// rope_scaling, version 5 rope_parameters. Biases are left to the family.
DecoderConfig llama_config(const Fields& fields);
/// Rotary positions as described by rope_parameters or rope_scaling; null leaves `rope` unchanged.
RopeOptions rope_from(const Json* parameters, RopeOptions rope, std::string_view source);
Json rope_json(const RopeOptions& rope);
/// The window of each layer (0: none), from layer_types, or from use_sliding_window with
/// max_window_layers.
std::vector<std::int64_t> windows_of(const Fields& fields, std::int64_t layers);

/// The fields of config.json except those of rotary positions and windows. Throws an Error that
/// begins with `family` for a model without such a form; layers may differ in windows and rotary
/// positions.
Json llama_json(const DecoderConfig& config, std::string_view family);
/// Adds the rotary positions in the forms of both versions, for a model whose layers all have the
/// same.
void add_rope(Json& json, const DecoderConfig& config, std::string_view family);
/// Adds layer_types and sliding_window. Returns the window, 0 if there is none.
std::int64_t add_windows(Json& json, const DecoderConfig& config, std::string_view family);
const SoftmaxHeads& heads_of(const DecoderConfig& config, std::int64_t layer);
/// All tensors. In the file the projections are three tensors, and so are the feed forward's
/// matrices.
std::vector<Exchange> llama_tensors(const Decoder& decoder);
/// True if all blocks are gated, sequential and rotary, with any norms and heads.
bool has_llama_blocks(const DecoderConfig& config);

}  // namespace longhand::nn
