#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "nn/models/decoder.h"

/// Training of single columns of every head's W_Q and W_K. These matrices have shape [width of the
/// stream, width of a head], and column c computes entry c of a query or key. The fused projection
/// of a layer stores the matrices transposed, so a column is a row of the projection.
namespace longhand::app {

/// Parses "last", "63" or "0,60..63" as indices of columns, in ascending order, for heads of this
/// width.
std::vector<std::int64_t> parse_head_columns(std::string_view text, std::int64_t width);

/// Throws an Error if a head with queries has too few columns, or if no head has queries.
void check_head_columns(const nn::DecoderConfig& model, std::string_view columns);

/// Freezes all parameters of a model except these columns of every head that has queries. The
/// columns of a key head that several query heads share are counted once.
void train_head_columns(const nn::Decoder& model, std::string_view columns);

}  // namespace longhand::app
