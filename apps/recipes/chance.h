#pragma once

#include <optional>
#include <string_view>

namespace longhand::app {

/// The result of guessing among the few answers of a task, in the unit of a recipe's figure.
/// Nothing for figures that are not an accuracy, and for tasks with so many answers that a guess is
/// never right.
std::optional<double> chance_of(std::string_view recipe, std::string_view row,
                                std::string_view column);

}  // namespace longhand::app
