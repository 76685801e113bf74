#include "apps/recipes/chance.h"

#include <algorithm>
#include <array>
#include <string>

namespace longhand::app {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// The result of guessing in the task FFML. An answer consists of one bit and the end token, which
/// every model predicts. A guessed bit is right in half of the cases. Half of the answers and three
/// quarters of the tokens are then right.
std::optional<double> of_ffml(std::string_view recipe, std::string_view column) {
  static constexpr std::array<std::string_view, 8> accuracies{
      "Acc.",       "before",          "after",   "with a matrix",
      "with heads", "with its matrix", "partial", "decoded"};
  if (column == "Accuracy") return 0.5;  // Tables 4 and 5 of AttentionSpan have shares, not percent
  const bool counted =
      std::ranges::any_of(accuracies, [&](auto word) { return has(column, word); });
  if (!counted || recipe == "attentionspan/table3") return {};
  return has(column, "artial") ? 75 : 50;
}

}  // namespace

std::optional<double> chance_of(std::string_view recipe, std::string_view row,
                                std::string_view column) {
  if (recipe.starts_with("attentionspan/") && row.starts_with("FFML"))
    return of_ffml(recipe, column);
  if (recipe == "fal/table1" && column.ends_with(", reads")) return 0.5;
  // Every element of a chain is one of eight symbols, so a guess is right in one of eight cases.
  const bool chains =
      recipe == "chacal/table1" || recipe == "chacal/fig5" || recipe == "chacal/fig3";
  if (chains && (column == "accuracy" || column.starts_with("step "))) return 0.125;
  return {};
}

}  // namespace longhand::app
