#pragma once

#include <cstddef>
#include <string>

/// Functions that write the elements of SVG figures.
namespace longhand::app::html {

std::string number(double value, int digits = 5);  // decimal notation
/// A number in short form, as at the marks of an axis. From 10,000 on it is abbreviated, as in 20k
/// and 1.5M.
std::string mark_label(double value);
std::string pixels(double value);  // a coordinate in SVG's notation
std::string decimals(double value, int places);
std::string colour(std::size_t index);

std::string label(double x, double y, const std::string& anchor, const std::string& text,
                  const std::string& more = "");
std::string rule(double x1, double y1, double x2, double y2);
/// Opens a picture. A picture is shrunk to the page's width, but never enlarged. A `steady` picture
/// keeps its size and scrolls instead.
std::string open(double width, double height, bool steady = false);

}  // namespace longhand::app::html
