#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tasks/task.h"

namespace longhand::tasks {

/// The kind of position ids. Except for `places`, the ids of each training sample are drawn from a
/// range that exceeds the sample's length. Training therefore also covers the ids that occur only
/// in longer test samples.
enum class PositionIds {
  places,   // 0, 1, 2, ... in each sequence
  random,   // distinct random numbers in ascending order
  coupled,  // Task::couplings (equal for tokens that belong together), plus a random offset
  // Index of each digit in its number (Task::digit_places) plus a random offset; 0 for tokens that
  // are not digits.
  abacus,
};
inline constexpr std::array<std::string_view, 4> position_ids_names{"places", "random", "coupled",
                                                                    "abacus"};

/// Returns a task with the samples of `task`, but with position ids of the kind `ids`, all less
/// than `range`. Each sample is drawn before its position ids, so the ids do not affect its tokens.
/// Throws an Error if the task does not define ids of this kind.
std::unique_ptr<Task> with_position_ids(std::unique_ptr<Task> task, PositionIds ids,
                                        std::int64_t range);

}  // namespace longhand::tasks
