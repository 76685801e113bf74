#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tasks/task.h"

namespace longhand::tasks {

/// Which numbers tell where tokens stand. Other than places they are drawn for each sample, below a
/// range that is larger than training's samples are long, so that longer ones have no number that
/// was not trained.
enum class PositionIds {
  places,   // 0, 1, 2, ... in each sequence
  random,   // as many different ones of the range, ascending
  coupled,  // tokens that belong together share one (Task::couplings), from a random start on
  abacus,   // of each digit in its number (Task::digit_places), from a random start on; others 0
};
inline constexpr std::array<std::string_view, 4> position_ids_names{"places", "random", "coupled",
                                                                    "abacus"};

/// The task with such positions in its samples, numbers below `range`: the same samples, for they
/// are drawn first. Refused where the task cannot tell them.
std::unique_ptr<Task> with_position_ids(std::unique_ptr<Task> task, PositionIds ids,
                                        std::int64_t range);

}  // namespace longhand::tasks
