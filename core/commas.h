#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace longhand {

/// Splits a list at its commas. A list without a comma is one item, even if it is empty.
inline std::vector<std::string_view> at_commas(std::string_view list) {
  std::vector<std::string_view> items;
  for (;;) {
    const std::size_t comma = std::min(list.find(','), list.size());
    items.push_back(list.substr(0, comma));
    if (comma == list.size()) return items;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace longhand
