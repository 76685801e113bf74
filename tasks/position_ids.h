#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tasks/task.h"

namespace longhand::tasks {

/// The kind of position ids. All kinds except `places` are drawn for each sample from a range that
/// exceeds the length of training samples, so that longer samples have no untrained ids.
enum class PositionIds {
  places,   // 0, 1, 2, ... in each sequence
  random,   // distinct random numbers of the range, in ascending order
  coupled,  // equal for tokens that belong together (Task::couplings), plus a random offset
  // Place of each digit in its number (Task::digit_places), plus a random offset; 0 for other
  // tokens.
  abacus,
};
inline constexpr std::array<std::string_view, 4> position_ids_names{"places", "random", "coupled",
                                                                    "abacus"};

/// Wraps a task so that its samples have these position ids, which are less than `range`. The
/// samples stay the same, because they are drawn first. Throws an Error if the task does not define
/// ids of this kind.
std::unique_ptr<Task> with_position_ids(std::unique_ptr<Task> task, PositionIds ids,
                                        std::int64_t range);

}  // namespace longhand::tasks
