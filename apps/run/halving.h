#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace longhand::app {

/// A stage of successive halving (Jamieson and Talwalkar 2016, arXiv:1502.07943): all settings are
/// trained for a part of the steps, the best 1 / eta of them for eta times as many, and so on,
/// until one is trained for all steps.
struct HalvingStage {
  std::size_t settings = 0;  // number of settings in the stage
  std::int64_t steps = 0;    // steps of each setting at the end of the stage

  bool operator==(const HalvingStage&) const = default;
};

/// The stages for this many settings; the last one has all `steps`. Throws an Error if the first
/// one would have none.
std::vector<HalvingStage> halving_stages(std::size_t settings, std::int64_t eta,
                                         std::int64_t steps);

/// The result of a setting after a stage. Early on all scores may be 0; losses then decide.
struct HalvingScore {
  double score = 0;
  double loss = 0;  // recent training loss
};
/// The `count` best settings, best first. Equal scores are ordered by loss, equal losses by index.
std::vector<std::size_t> best_of(const std::vector<HalvingScore>& scores, bool less_is_better,
                                 std::size_t many);

}  // namespace longhand::app
