#pragma once

#include <cstdint>
#include <string_view>

#include "core/rng.h"
#include "tasks/options.h"

namespace longhand::tasks {

/// A range of integers from which numbers are drawn uniformly. As the value of an option, it is
/// written "1-10" or "7".
struct Range {
  std::int64_t least = 0, most = 0;

  static Range of(const OptionValues& options, std::string_view name, std::int64_t low,
                  std::int64_t high);
  std::int64_t draw(Rng& rng) const;
};

}  // namespace longhand::tasks
