#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "nn/models/decoder.h"

/// Training of single columns of every head's W_Q and W_K. These matrices have shape [width of the
/// stream, width of a head], and column c computes entry c of a query or key. The fused projection
/// of a layer stores the matrices transposed, so a column is a row of the projection.
namespace longhand::app {

/// Parses a list of columns of W_Q and W_K, such as "last", "63" or "0,60..63", for heads of this
/// width. Returns the indices in ascending order.
std::vector<std::int64_t> parse_head_columns(std::string_view text, std::int64_t width);

/// Throws an Error if no head of the model has queries, or if the list `columns` is invalid for a
/// head that has queries, for example because the head is too narrow.
void check_head_columns(const nn::DecoderConfig& model, std::string_view columns);

/// Freezes all parameters of a model except the listed columns of W_Q and W_K, in every head that
/// has queries. If several query heads share a W_K, its columns are trained once.
void train_head_columns(const nn::Decoder& model, std::string_view columns);

}  // namespace longhand::app
