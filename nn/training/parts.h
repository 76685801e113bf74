#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "nn/module.h"

/// Selects parts of a model by name.
namespace longhand::nn {

/// True if the pattern matches the parameter's name or the name of something that contains it
/// ("blocks.0" contains blocks.0.norm1.weight). * matches any characters, including dots.
bool matches_part(std::string_view name, std::string_view pattern);

/// Parameters matched by one of the patterns: "embedding,blocks.*.mixing,*.bias". Throws an Error
/// for a pattern without a match.
std::vector<Parameter> find_parts(const Parameters& parameters, std::string_view patterns);

/// Freezes all other parameters.
void train_only(const Parameters& parameters, std::span<const Parameter> learning);

}  // namespace longhand::nn
