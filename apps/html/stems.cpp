#include "apps/html/stems.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/html/chart.h"
#include "apps/html/page.h"
#include "apps/html/svg.h"

namespace longhand::app::html {

std::string stems(const Stems& diagram) {
  constexpr double width = 360, height = 150, left = 40, right = 8, top = 40, bottom = 6;
  double low = 0, high = 0;
  for (const double value : diagram.values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low == high) high = 1;
  const auto count = static_cast<double>(std::max<std::size_t>(1, diagram.values.size()));
  const auto x = [&](std::size_t i) {
    return left + (width - left - right) * (static_cast<double>(i) + 0.5) / count;
  };
  const auto y = [&](double value) {
    return top + (height - top - bottom) * (high - value) / (high - low);
  };
  std::string svg = open(width, height);
  for (const double mark : ticks(low, high, 3)) {
    if (mark > high || mark < low) continue;
    svg += rule(left, y(mark), width - right, y(mark));
    svg += label(left - 4, y(mark) + 4, "end", number(mark));
  }

  std::vector<std::size_t> order(diagram.values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t named =
      std::min(order.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, diagram.named)));
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(named), {},
                            [&](std::size_t i) {
                              const double value = diagram.values[i];
                              return std::isfinite(value) ? -value : high + 1;
                            });
  std::vector<bool> strong(diagram.values.size());
  for (std::size_t k = 0; k < named; ++k) strong[order[k]] = true;
  std::vector<double> taken;  // positions of the labels drawn so far
  for (std::size_t k = 0; k < named; ++k) {
    const std::size_t i = order[k];
    const auto near =
        std::ranges::count_if(taken, [&](double column) { return std::abs(column - x(i)) < 24; });
    // Labels that are close to each other are stacked.
    const double above = 3 + 12 * static_cast<double>(near);
    svg += label(x(i), y(std::max(0.0, near == 0 ? diagram.values[i] : high)) - above, "middle",
                 diagram.names.at(i), "style=\"fill:var(--c1);font-weight:bold\"");
    taken.push_back(x(i));
  }
  for (std::size_t i = 0; i < diagram.values.size(); ++i) {
    const double value = diagram.values[i];
    if (!std::isfinite(value)) continue;
    svg += "<line x1=\"" + pixels(x(i)) + "\" x2=\"" + pixels(x(i)) + "\" y1=\"" + pixels(y(0)) +
           "\" y2=\"" + pixels(y(value)) + "\" stroke=\"" + colour(strong[i] ? 1 : 0) +
           "\" stroke-width=\"" + (strong[i] ? "2.2" : "1.4") + "\"><title>" +
           escape(diagram.names.at(i)) + ": " + number(value) + "</title></line>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace longhand::app::html
