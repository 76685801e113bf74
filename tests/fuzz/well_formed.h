#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/promise.h"

namespace longhand::fuzz {

/// Requires that HTML or MathML closes its tags in reverse order of opening, and that there is no
/// "<" outside of tags.
inline void require_well_formed(std::string_view html) {
  constexpr std::array<std::string_view, 2> alone{"br", "img"};
  std::vector<std::string> open;
  for (std::size_t i = html.find('<'); i != html.npos; i = html.find('<', i)) {
    const bool closes = html.substr(i + 1).starts_with('/');
    const std::size_t name = i + (closes ? 2 : 1);
    const std::size_t end = std::min(html.find_first_of(" >", name), html.size());
    const std::string tag(html.substr(name, end - name));
    require(!tag.empty(), "a tag has a name");
    bool quoted = false;
    std::size_t close = end;
    while (close < html.size() && (quoted || html[close] != '>')) {
      require(html[close] != '<', "there is no < in a tag");
      quoted ^= html[close++] == '"';
    }
    require(close < html.size(), "a tag is closed");
    if (closes) {
      require(!open.empty() && open.back() == tag, "tags are closed in order");
      open.pop_back();
    } else if (std::ranges::count(alone, tag) == 0) {
      open.push_back(tag);
    }
    i = close;
  }
  require(open.empty(), "every tag is closed");
}

}  // namespace longhand::fuzz
