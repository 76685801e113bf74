#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tasks/task.h"

namespace longhand::tasks {

/// Which numbers are used as positions. Numbers other than places are drawn for each sample from a
/// range that exceeds the length of training samples, so longer samples have no untrained number.
enum class PositionIds {
  places,   // 0, 1, 2, ... in each sequence
  random,   // distinct random numbers of the range, ascending
  coupled,  // shared by tokens that belong together (Task::couplings), with a random offset
  // place of each digit in its number (Task::digit_places), with a random offset; 0 for other
  // tokens
  abacus,
};
inline constexpr std::array<std::string_view, 4> position_ids_names{"places", "random", "coupled",
                                                                    "abacus"};

/// The task with such positions, which are below `range`. The samples stay the same, because they
/// are drawn first. Throws an Error if the task does not define such positions.
std::unique_ptr<Task> with_position_ids(std::unique_ptr<Task> task, PositionIds ids,
                                        std::int64_t range);

}  // namespace longhand::tasks
