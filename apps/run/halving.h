#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace longhand::app {

/// A stage of successive halving (Jamieson and Talwalkar 2016, arXiv:1502.07943), a search for the
/// best settings. The first stage trains all settings for a fraction of the steps. With the factor
/// eta, each later stage trains the best 1 / eta of the settings for eta times as many steps, until
/// one setting is trained for all steps.
struct HalvingStage {
  std::size_t settings = 0;  // number of settings in the stage
  std::int64_t steps = 0;    // total steps of each setting at the end of the stage

  bool operator==(const HalvingStage&) const = default;
};

/// The stages of successive halving for this number of settings. The last stage trains one setting
/// for all `steps`. Throws an Error if the first stage would have no steps.
std::vector<HalvingStage> halving_stages(std::size_t settings, std::int64_t eta,
                                         std::int64_t steps);

/// The result of one setting after a stage of successive halving. Settings with equal scores, for
/// example 0 in early stages, are compared by loss.
struct HalvingScore {
  double score = 0;
  double loss = 0;  // mean training loss of recent steps
};
/// The indices of the `many` best settings, the best first. Settings with equal scores are ordered
/// by loss. If the losses are also equal, they are ordered by index.
std::vector<std::size_t> best_of(const std::vector<HalvingScore>& scores, bool less_is_better,
                                 std::size_t many);

}  // namespace longhand::app
