#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "core/commas.h"
#include "core/quote.h"

namespace longhand::app {

/// The entries of `all` that are named in a flag's list, such as "rope,fal", in the order of the
/// list. Throws UsageError for an unknown or repeated name.
template <class T>
std::vector<const T*> chosen(std::string_view flag, std::string_view list, std::span<const T> all) {
  std::vector<const T*> found;
  for (const std::string_view name : at_commas(list)) {
    const auto one = std::ranges::find(all, name, &T::name);
    if (one == all.end()) {
      std::string names;
      for (const T& other : all) names += (names.empty() ? "" : ", ") + std::string(other.name);
      wrong_usage("--", flag, ": there is no ", quote(name), "; the known names are ", names);
    }
    if (std::ranges::count(found, &*one) > 0) {
      wrong_usage("--", flag, ": ", quote(name), " is named twice");
    }
    found.push_back(&*one);
  }
  return found;
}

}  // namespace longhand::app
