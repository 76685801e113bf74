#pragma once

#include <optional>
#include <string_view>

namespace longhand::app {

/// The accuracy of random guessing for one cell of a recipe's table, in the unit of that cell.
/// There is no value if the cell is not an accuracy, or if the task has so many answers that a
/// guess is practically never right.
std::optional<double> chance_of(std::string_view recipe, std::string_view row,
                                std::string_view column);

}  // namespace longhand::app
