#include "apps/html/heat_table.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "apps/html/page.h"
#include "apps/html/svg.h"

namespace longhand::app::html {
namespace {

// Opacity of the darkest background. Numbers remain readable on it in light and dark mode.
constexpr double darkest = 0.55;
constexpr std::string_view tight = "padding:.2rem .3rem;text-align:center";
constexpr std::string_view first_of_group = ";border-left:2px solid var(--rule)";

std::string cell_style(bool first, const std::string& more = {}) {
  return " style=\"" + std::string(tight) + (first ? std::string(first_of_group) : "") + more +
         "\"";
}

}  // namespace

std::string heat_table(const HeatTable& table) {
  std::set<std::size_t> firsts;
  std::string groups = "<th></th>", columns = "<th></th>";
  std::size_t count = 0;
  for (const HeatTable::Group& group : table.groups) {
    groups += "<th colspan=\"" + std::to_string(group.columns.size()) + "\"" + cell_style(true) +
              ">" + escape(group.name) + "</th>";
    firsts.insert(count);
    for (std::size_t i = 0; i < group.columns.size(); ++i) {
      columns += "<th" + cell_style(i == 0) + ">" + escape(group.columns[i]) + "</th>";
    }
    count += group.columns.size();
  }
  std::string html = "<div class=\"scroll\"><table style=\"font-size:.85rem\"><thead><tr>" +
                     groups + "</tr><tr>" + columns + "</tr></thead><tbody>\n";
  for (const HeatTable::Row& row : table.rows) {
    html += "<tr><td>" + escape(row.name) + "</td>";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const HeatTable::Cell& cell = row.cells[i];
      const double share = std::isfinite(cell.share) ? std::clamp(cell.share, 0.0, 1.0) : 0;
      const std::string ground =
          ";background:rgba(var(--hot)," + number(std::round(share * darkest * 1e3) / 1e3) + ")";
      html += "<td" + cell_style(firsts.contains(i), share > 0 ? ground : "") +
              (cell.title.empty() ? "" : " title=\"" + escape(cell.title) + "\"") + ">" +
              escape(cell.text);
      if (!cell.small.empty()) {
        html += "<br><small class=\"subtitle\">" + escape(cell.small) + "</small>";
      }
      html += "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace longhand::app::html
