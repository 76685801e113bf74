#include "apps/recipes/recipe.h"

#include <algorithm>
#include <cstdio>

#include "apps/recipes/chance.h"
#include "core/error.h"

namespace longhand::app {
namespace {

constexpr std::string_view scales[] = {"smoke", "laptop", "paper", "extended"};

std::map<std::string, Recipe, std::less<>>& recipe_registry() {
  static std::map<std::string, Recipe, std::less<>> all;
  return all;
}

std::string figure_of(double value, bool whole = false) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, whole ? "%.0f" : "%.3f", value);
  return buffer;
}

std::string cell(std::string_view recipe, const Row& row) {
  std::string text = "<b>" + figure_of(row.value, row.whole) + "</b>";
  if (row.low && row.high) {
    text += " <small>[" + figure_of(*row.low) + ", " + figure_of(*row.high) + "]</small>";
  }
  if (row.paper) {
    text += "<br><span class=\"subtitle\">paper " + figure_of(*row.paper, row.whole) + "</span>";
  }
  if (const auto chance = chance_of(recipe, row.row, row.column)) {
    text += "<br><span class=\"subtitle\">chance " + figure_of(*chance) + "</span>";
  }
  return text;
}

}  // namespace

std::string_view name_of(Scale scale) { return scales[static_cast<std::size_t>(scale)]; }

std::string_view name_of(Bounds bounds) {
  return bounds == Bounds::confidence ? "95%" : "worst to best";
}

std::optional<Scale> scale_from_name(std::string_view name) {
  for (std::size_t i = 0; i < std::size(scales); ++i) {
    if (scales[i] == name) return static_cast<Scale>(i);
  }
  return std::nullopt;
}

RegisterRecipe::RegisterRecipe(Recipe recipe) {
  const std::string id = recipe.id;
  LONGHAND_CHECK(recipe_registry().emplace(id, std::move(recipe)).second, "recipe ", id,
                 " is registered twice");
}

const std::map<std::string, Recipe, std::less<>>& recipes() { return recipe_registry(); }

std::string comparison_table(std::string_view recipe, const std::vector<Row>& rows) {
  std::vector<std::string> names, columns;
  const auto note = [](std::vector<std::string>& list, const std::string& name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  };
  for (const Row& row : rows) {
    if (!row.in_table) continue;
    note(names, row.row);
    note(columns, row.column);
  }
  std::vector<std::string> header{""};
  for (const std::string& column : columns) header.push_back(html::escape(column));
  std::vector<std::vector<std::string>> body;
  for (const std::string& name : names) {
    std::vector<std::string> line{html::escape(name)};
    for (const std::string& column : columns) {
      const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
        return row.in_table && row.row == name && row.column == column;
      });
      line.push_back(found == rows.end() ? "" : cell(recipe, *found));
    }
    body.push_back(std::move(line));
  }
  return html::table(header, body);
}

}  // namespace longhand::app
