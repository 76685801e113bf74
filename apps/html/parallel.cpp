#include "apps/html/parallel.h"

#include <algorithm>

#include "apps/html/page.h"
#include "apps/html/svg.h"

namespace longhand::app::html {

std::string parallel_coordinates(const ParallelCoordinates& picture) {
  constexpr double width = 720, height = 300, side = 70, top = 34, bottom = 20;
  const std::size_t count = picture.axes.size();
  std::string svg = open(width, height);
  const auto x = [&](std::size_t axis) {
    const double step = count > 1 ? (width - 2 * side) / static_cast<double>(count - 1) : 0;
    return side + step * static_cast<double>(axis);
  };
  const auto y = [&](double share) {
    return height - bottom - (height - bottom - top) * std::clamp(share, 0.0, 1.0);
  };
  for (const ParallelCoordinates::Line& line : picture.lines) {
    std::string path;
    for (std::size_t i = 0; i < std::min(count, line.at.size()); ++i) {
      path += (i == 0 ? "M" : "L") + pixels(x(i)) + " " + pixels(y(line.at[i])) + " ";
    }
    const double share = std::clamp(line.share, 0.0, 1.0);
    svg += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour(1) +
           "\" stroke-width=\"2.2\" opacity=\"" + number(0.12 + 0.88 * share * share, 3) +
           "\"><title>" + escape(line.title) + "</title></path>\n";
  }
  for (std::size_t i = 0; i < count; ++i) {
    const ParallelCoordinates::Axis& axis = picture.axes[i];
    svg += rule(x(i), y(0), x(i), y(1));
    svg += label(x(i), 16, "middle", axis.name, "font-weight=\"bold\"");
    for (std::size_t k = 0; k < axis.marks.size(); ++k) {
      const double share = axis.marks.size() > 1
                               ? static_cast<double>(k) / static_cast<double>(axis.marks.size() - 1)
                               : 0.5;
      const bool last = i + 1 == count && count > 1;
      svg += label(x(i) + (last ? 8 : -8), y(share) + 4, last ? "start" : "end", axis.marks[k]);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace longhand::app::html
