#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace longhand::app {

/// A stage of successive halving (Jamieson and Talwalkar 2016, arXiv:1502.07943), a search for the
/// best setting. Here, a setting is a combination of option values. The first stage trains runs
/// with all settings for a fraction of the steps. Each later stage keeps the best 1 / eta of the
/// settings and trains their runs for eta times as many steps. The last stage keeps one setting and
/// trains it for all steps.
struct HalvingStage {
  std::size_t settings = 0;  // number of settings in the stage
  std::int64_t steps = 0;    // total steps of each setting at the end of the stage

  bool operator==(const HalvingStage&) const = default;
};

/// The stages of successive halving for this number of settings. The last stage trains one setting
/// for all `steps`. Throws an Error if the first stage would have no steps.
std::vector<HalvingStage> halving_stages(std::size_t settings, std::int64_t eta,
                                         std::int64_t steps);

/// The result of one setting after a stage of successive halving. If scores are equal, settings are
/// compared by loss. In early stages, for example, all scores may be 0.
struct HalvingScore {
  double score = 0;
  double loss = 0;  // mean training loss of recent steps
};
/// The indices of the `many` best settings, the best first. Settings with equal scores are ordered
/// by loss. If the losses are also equal, they are ordered by index.
std::vector<std::size_t> best_of(const std::vector<HalvingScore>& scores, bool less_is_better,
                                 std::size_t many);

}  // namespace longhand::app
