#include "apps/html/heat_map.h"

#include <algorithm>
#include <cmath>

#include "apps/html/page.h"
#include "apps/html/svg.h"
#include "core/utf8.h"

namespace longhand::app::html {
namespace {

// Font size in pixels, and approximate width of a letter.
constexpr double font = 11, letter = 0.62 * font;
constexpr std::size_t longest_label = 12;  // in letters
// A square is left blank if its value is at most this share of HeatMap::full.
constexpr double faintest = 0.004;

/// Shortens a text to the maximum number of letters and appends an ellipsis.
std::string shortened(const std::string& text) {
  if (count_code_points(text) <= longest_label) return text;
  std::size_t end = 0;
  for (std::size_t taken = 0; taken < longest_label; ++end) taken += !continues_utf8(text[end]);
  return text.substr(0, end - 1) + "\u2026";  // the last letter is replaced by the ellipsis
}

/// The labels along the left or upper side of a heat map.
struct Side {
  std::vector<std::string> labels;  // shortened labels
  double longest = 0;               // width of the longest label in pixels
  std::size_t stride = 1;           // only every stride-th label is written

  Side(const std::vector<std::string>& all, double cell) {
    for (const std::string& text : all) {
      labels.push_back(shortened(text));
      longest = std::max(longest, letter * static_cast<double>(count_code_points(labels.back())));
    }
    stride = static_cast<std::size_t>(std::max(1.0, std::ceil(font / cell)));
  }
  bool empty() const { return labels.empty(); }
};

std::string square(double x, double y, double size, const std::string& look,
                   const std::string& title) {
  return "<rect x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" width=\"" + pixels(size) +
         "\" height=\"" + pixels(size) + "\" " + look + "><title>" + escape(title) +
         "</title></rect>\n";
}

}  // namespace

std::string heat_map(const HeatMap& map) {
  const double cell = std::clamp(
      420.0 / static_cast<double>(std::max<std::int64_t>({1, map.width, map.height})), 3.0, 20.0);
  const Side rows(map.rows, cell), columns(map.columns, cell);
  // Column labels that are too long to fit side by side are rotated.
  const bool upright = columns.longest > cell * static_cast<double>(columns.stride);
  const double left = rows.empty() ? 4 : rows.longest + 10;
  const double top = columns.empty() ? 4 : (upright ? columns.longest : font) + 10;
  const double width = cell * static_cast<double>(map.width);
  const double height = cell * static_cast<double>(map.height);
  const auto x_of = [&](std::int64_t j) { return left + cell * static_cast<double>(j); };
  const auto y_of = [&](std::int64_t i) { return top + cell * static_cast<double>(i); };
  const auto value_at = [&](std::int64_t i, std::int64_t j) {
    return map.values[static_cast<std::size_t>(i * map.width + j)];
  };
  const auto name_at = [](const std::vector<std::string>& names, std::int64_t i) {
    return names.empty() ? std::to_string(i) : names[static_cast<std::size_t>(i)];
  };
  const auto title = [&](std::int64_t i, std::int64_t j) {
    return name_at(map.rows, i) + " (" + std::to_string(i) + ") \u2192 " + name_at(map.columns, j) +
           " (" + std::to_string(j) + "): " + number(value_at(i, j));
  };

  std::string svg = open(left + width + 4, top + height + 4, true);
  const std::string small = "style=\"font-size:" + pixels(font) + "px\"";
  for (std::size_t i = 0; i < rows.labels.size(); i += rows.stride) {
    const double y = y_of(static_cast<std::int64_t>(i)) + cell / 2 + font / 3;
    svg += label(left - 5, y, "end", rows.labels[i], small);
  }
  for (std::size_t j = 0; j < columns.labels.size(); j += columns.stride) {
    const double x = x_of(static_cast<std::int64_t>(j)) + cell / 2;
    if (!upright) {
      svg += label(x, top - 5, "middle", columns.labels[j], small);
      continue;
    }
    const std::string turn =
        " transform=\"rotate(-90 " + pixels(x + font / 3) + " " + pixels(top - 5) + ")\"";
    svg += label(x + font / 3, top - 5, "start", columns.labels[j], small + turn);
  }
  svg += "<g fill=\"rgb(var(--hot))\">\n";
  for (std::int64_t i = 0; i < map.height; ++i) {
    for (std::int64_t j = 0; j < map.width; ++j) {
      const double share = std::clamp(value_at(i, j) / map.full, 0.0, 1.0);
      if (!(share > faintest)) continue;
      svg += square(x_of(j), y_of(i), cell,
                    "fill-opacity=\"" + number(std::round(share * 1e3) / 1e3) + "\"", title(i, j));
    }
  }
  svg += "</g>\n<g fill=\"transparent\" stroke=\"" + colour(1) + "\" stroke-width=\"" +
         pixels(cell < 8 ? 1 : 1.6) + "\">\n";
  for (const auto& [i, j] : map.outlined) {
    if (i < map.height && j < map.width) svg += square(x_of(j), y_of(i), cell, "", title(i, j));
  }
  svg += "</g>\n<rect x=\"" + pixels(left) + "\" y=\"" + pixels(top) + "\" width=\"" +
         pixels(width) + "\" height=\"" + pixels(height) +
         "\" fill=\"none\" stroke=\"var(--rule)\"/>\n";
  return svg + "</svg>\n";
}

std::string colour_scale(double full, const std::string& meaning) {
  constexpr double left = 10, step = 24, size = 14;
  constexpr int steps = 11;
  const double right = left + step * steps;
  std::string svg =
      open(right + 20 + letter * static_cast<double>(count_code_points(meaning)), 40, true);
  for (int i = 0; i < steps; ++i) {
    const double share = static_cast<double>(i) / (steps - 1), x = left + step * i;
    svg += "<rect x=\"" + pixels(x) + "\" y=\"4\" width=\"" + pixels(step) + "\" height=\"" +
           pixels(size) + "\" fill=\"rgb(var(--hot))\" fill-opacity=\"" + number(share) +
           "\" stroke=\"var(--rule)\"/>\n";
    if (i % 5 == 0) svg += label(x + step / 2, 34, "middle", number(full * share));
  }
  svg += label(right + 10, 16, "start", meaning);
  return svg + "</svg>\n";
}

}  // namespace longhand::app::html
