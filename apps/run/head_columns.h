#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "nn/models/decoder.h"

/// Training of single columns of the matrices that make each head's queries and keys: those of the
/// entries c of a head's W_Q and W_K, [width of the stream, width of a head]. In a layer's
/// projection, whose outputs are rows, such a column is a row.
namespace longhand::app {

/// "last", "63" or "0,60..63" as entries of heads of this width, ascending.
std::vector<std::int64_t> parse_head_columns(std::string_view text, std::int64_t width);

/// Refused where some heads with queries have no such columns, or none has queries.
void check_head_columns(const nn::DecoderConfig& model, std::string_view columns);

/// Freezes all of a model but these columns, in every head with queries. A key head that several
/// query heads read is one head.
void train_head_columns(const nn::Decoder& model, std::string_view columns);

}  // namespace longhand::app
