#include "apps/html/svg.h"

#include <cstdio>

#include "apps/html/page.h"

namespace longhand::app::html {

std::string number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.5g", value);
  return buffer;
}

std::string pixels(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f", value);
  return buffer;
}

std::string colour(std::size_t index) { return "var(--c" + std::to_string(index % 6) + ")"; }

std::string label(double x, double y, const std::string& anchor, const std::string& text,
                  const std::string& more) {
  return "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" text-anchor=\"" + anchor +
         "\" fill=\"var(--faint)\" font-size=\"12\" " + more + ">" + escape(text) + "</text>\n";
}

std::string rule(double x1, double y1, double x2, double y2) {
  return "<line x1=\"" + pixels(x1) + "\" y1=\"" + pixels(y1) + "\" x2=\"" + pixels(x2) +
         "\" y2=\"" + pixels(y2) + "\" stroke=\"var(--rule)\"/>\n";
}

std::string open(double width, double height, bool steady) {
  constexpr double phone = 400;  // what is no wider keeps its size there
  const std::string shrinks = width > phone ? "class=\"shrinks\" " : "";
  return "<svg " + (steady ? "style=\"width:" : shrinks + "style=\"max-width:") + pixels(width) +
         "px\" viewBox=\"0 0 " + pixels(width) + " " + pixels(height) +
         "\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" "
         "font-family=\"system-ui, sans-serif\">\n";
}

}  // namespace longhand::app::html
