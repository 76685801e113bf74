#pragma once

#include <optional>
#include <string_view>

namespace longhand::app {

/// The result of random guessing, in the unit of the recipe's figure. There is no value for figures
/// that are not an accuracy, and for tasks with so many answers that a guess is practically never
/// right.
std::optional<double> chance_of(std::string_view recipe, std::string_view row,
                                std::string_view column);

}  // namespace longhand::app
