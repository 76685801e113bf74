#pragma once

#include <cstddef>
#include <string>

/// Building blocks of SVG figures.
namespace longhand::app::html {

std::string number(double value, int digits = 5);  // in decimal notation
std::string mark_label(double value);              // for an axis: 20k, 1.5M from 10,000 on
std::string pixels(double value);                  // in SVG's notation
std::string decimals(double value, int places);
std::string colour(std::size_t index);

std::string label(double x, double y, const std::string& anchor, const std::string& text,
                  const std::string& more = "");
std::string rule(double x1, double y1, double x2, double y2);
/// Opens a picture that shrinks to the page's width but never exceeds its own; a `steady` one
/// scrolls instead.
std::string open(double width, double height, bool steady = false);

}  // namespace longhand::app::html
