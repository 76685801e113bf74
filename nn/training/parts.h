#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "nn/module.h"

/// Selection of parameters by name patterns.
namespace longhand::nn {

/// True if the pattern matches the name of the parameter or the name of a scope that contains it.
/// For example, the scope blocks.0 contains the parameter blocks.0.norm1.weight. * matches any
/// characters, including dots.
bool matches_part(std::string_view name, std::string_view pattern);

/// All parameters that match at least one pattern of a list, such as
/// "embedding,blocks.*.mixing,*.bias". Throws an Error if one of the patterns matches no parameter.
std::vector<Parameter> find_parts(const Parameters& parameters, std::string_view patterns);

/// Freezes all parameters except these.
void train_only(const Parameters& parameters, std::span<const Parameter> learning);

}  // namespace longhand::nn
