#pragma once

#include <string>
#include <vector>

#include "nn/models/hugging_face.h"

/// What the families that follow Llama have in common in Hugging Face's form: blocks in sequential
/// order, RMS norms, softmax heads with grouped keys and rotary positions, gated feed forwards,
/// parameters by the same names. A family says where it differs.
namespace longhand::nn {

/// The sizes and the rotary positions, from either form of config.json: version 4 has rope_theta
/// and rope_scaling, version 5 rope_parameters. Biases are left to the family.
DecoderConfig llama_config(const Fields& fields);
/// Rotary positions as rope_parameters or rope_scaling describe them (none: as `rope` has them).
RopeOptions rope_from(const Json* parameters, RopeOptions rope, std::string_view source);
Json rope_json(const RopeOptions& rope);
/// Which layers look at a window alone, and how far it goes (0: none does): layer_types, or else
/// use_sliding_window with max_window_layers.
std::vector<std::int64_t> windows_of(const Fields& fields, std::int64_t layers);

/// The fields of config.json that go back, but for the rotary positions' and the windows'. An
/// Error, beginning with `family`, for a model that has no such form; layers may differ in windows
/// and rotary positions.
Json llama_json(const DecoderConfig& config, std::string_view family);
/// The rotary positions in both versions' form, of a model whose layers have the same.
void add_rope(Json& json, const DecoderConfig& config, std::string_view family);
/// The windows: layer_types and sliding_window. Returns how far they go, 0 where there are none.
std::int64_t add_windows(Json& json, const DecoderConfig& config, std::string_view family);
const SoftmaxHeads& heads_of(const DecoderConfig& config, std::int64_t layer);
/// All tensors; projections are three there, and so are the feed forward's matrices.
std::vector<Exchange> llama_tensors(const Decoder& decoder);
/// Gated blocks in sequential order under rotary positions, whatever their norms and heads are.
bool has_llama_blocks(const DecoderConfig& config);

}  // namespace longhand::nn
