#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace longhand::app {

/// Successive halving (Jamieson and Talwalkar 2016, arXiv:1502.07943): all settings are trained for
/// a share of the steps, the best 1 / eta of them for eta times as many, and so on, until one is
/// left, which is trained for all steps.
struct HalvingStage {
  std::size_t settings = 0;  // that are in it
  std::int64_t steps = 0;    // that each of them has been trained for at its end

  bool operator==(const HalvingStage&) const = default;
};

/// The stages of so many settings; the last one has all `steps`. Refused where the first one would
/// have none.
std::vector<HalvingStage> halving_stages(std::size_t settings, std::int64_t eta,
                                         std::int64_t steps);

/// What a setting is judged by after a stage: early on all may score nothing, and losses tell.
struct HalvingScore {
  double score = 0;
  double loss = 0;  // in training, of late
};
/// The best first: which of them go on, so many. Of equal scores the one with the lower loss, of
/// equal losses the earlier.
std::vector<std::size_t> best_of(const std::vector<HalvingScore>& scores, bool less_is_better,
                                 std::size_t many);

}  // namespace longhand::app
