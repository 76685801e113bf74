#pragma once

#include <cstddef>
#include <string>

/// Pieces of SVG that the figures are made of.
namespace longhand::app::html {

std::string number(double value, int digits = 5);  // as one reads it
std::string mark_label(double value);              // beside an axis: 20k, 1.5M from 10,000 on
std::string pixels(double value);                  // as SVG wants it
std::string decimals(double value, int places);
std::string colour(std::size_t index);

std::string label(double x, double y, const std::string& anchor, const std::string& text,
                  const std::string& more = "");
std::string rule(double x1, double y1, double x2, double y2);
/// Shrinks to the page's width but never grows past its own; a `steady` one is scrolled instead.
std::string open(double width, double height, bool steady = false);

}  // namespace longhand::app::html
