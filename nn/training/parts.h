#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "nn/module.h"

/// Parts of a model by name, for a user who says what is to learn.
namespace longhand::nn {

/// A parameter's name, or the name of something it is in ("blocks.0" for blocks.0.norm1.weight),
/// is the pattern, in which * stands for any characters, dots too.
bool matches_part(std::string_view name, std::string_view pattern);

/// Those that one of the patterns names: "embedding,blocks.*.mixing,*.bias".
/// An Error for a pattern that names none.
std::vector<Parameter> find_parts(const Parameters& parameters, std::string_view patterns);

/// Freezes all others.
void train_only(const Parameters& parameters, std::span<const Parameter> learning);

}  // namespace longhand::nn
