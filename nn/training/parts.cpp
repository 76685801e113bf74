#include "nn/training/parts.h"

#include <algorithm>

#include "core/commas.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {
namespace {

/// True if the whole name matches the pattern, in which each star matches any characters. A star
/// first matches no characters. After each mismatch, the star that was read last matches one more
/// character, and the comparison continues after this star. The time is at most proportional to the
/// product of the two lengths.
bool matches(std::string_view name, std::string_view pattern) {
  std::size_t n = 0, p = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace

bool matches_part(std::string_view name, std::string_view pattern) {
  for (std::size_t end = name.size(); end != std::string_view::npos;
       end = end == 0 ? std::string_view::npos : name.rfind('.', end - 1)) {
    if (matches(name.substr(0, end), pattern)) return true;
  }
  return false;
}

std::vector<Parameter> find_parts(const Parameters& parameters, std::string_view patterns) {
  std::vector<Parameter> found;
  for (const std::string_view pattern : at_commas(patterns)) {
    bool any = false;
    for (const Parameter& p : parameters.all()) {
      if (!matches_part(p.name(), pattern)) continue;
      any = true;
      if (std::ranges::count(found, p) == 0) found.push_back(p);
    }
    LONGHAND_CHECK(any, "parts: expected names of parameters such as ",
                   parameters.all().front().name(), ", got ", quote(pattern),
                   ", which matches no parameter");
  }
  return found;
}

void train_only(const Parameters& parameters, std::span<const Parameter> learning) {
  for (const Parameter& p : parameters.all()) p.freeze(std::ranges::count(learning, p) == 0);
}

}  // namespace longhand::nn
