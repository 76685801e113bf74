#include "apps/html/svg.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "apps/html/page.h"

namespace longhand::app::html {

// printf is not used, because its decimal point depends on the locale.
std::string number(double value, int digits) {
  char written[32];
  const auto end =
      std::to_chars(written, written + sizeof written, value, std::chars_format::general, digits)
          .ptr;
  return {written, end};
}

std::string mark_label(double value) {
  constexpr std::pair<double, char> units[] = {{1e12, 'T'}, {1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}};
  const double size = std::abs(value);
  for (const auto& [unit, letter] : units) {
    if (size >= 1e4 && size >= unit && size < 1e16) return number(value / unit) + letter;
  }
  return number(value);
}

std::string decimals(double value, int places) {
  char digits[400];  // large enough for any double
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, places).ptr;
  return {digits, end};
}

std::string pixels(double value) { return decimals(value, 1); }

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
  // Pictures up to this width in pixels are not shrunk on phones.
  constexpr double phone = 400;
  const std::string shrinks = width > phone ? "class=\"shrinks\" " : "";
  return "<svg " + (steady ? "style=\"width:" : shrinks + "style=\"max-width:") + pixels(width) +
         "px\" viewBox=\"0 0 " + pixels(width) + " " + pixels(height) +
         "\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" "
         "font-family=\"system-ui, sans-serif\">\n";
}

}  // namespace longhand::app::html
