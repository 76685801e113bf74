#pragma once

#include <optional>
#include <string_view>

namespace longhand::app {

/// What guessing among the few answers of a task gives for a figure of a recipe, in the figure's
/// unit. None for figures that are no accuracy, and for tasks with so many answers that a guess is
/// never right.
std::optional<double> chance_of(std::string_view recipe, std::string_view row,
                                std::string_view column);

}  // namespace longhand::app
