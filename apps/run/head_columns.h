#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "nn/models/decoder.h"

/// Trains single columns of the matrices of each head's queries and keys: those of the entries c of
/// a head's W_Q and W_K, [width of the stream, width of a head]. In a layer's projection, whose
/// outputs are rows, such a column is a row.
namespace longhand::app {

/// Parses "last", "63" or "0,60..63" as entries of heads of this width, ascending.
std::vector<std::int64_t> parse_head_columns(std::string_view text, std::int64_t width);

/// Throws an Error if some heads with queries lack these columns, or if no head has queries.
void check_head_columns(const nn::DecoderConfig& model, std::string_view columns);

/// Freezes everything in a model except these columns in every head with queries. A key head shared
/// by several query heads counts once.
void train_head_columns(const nn::Decoder& model, std::string_view columns);

}  // namespace longhand::app
