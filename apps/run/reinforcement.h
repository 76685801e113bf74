#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "apps/run/reference_scores.h"
#include "apps/run/run_folder.h"

/// Reinforcement: selected softmax heads attend more to a task's reference tokens
/// (core/contract/reinforce.h; AttentionSpan, section 6.1).
namespace longhand::app {

struct ReinforcementSetting {
  std::int64_t heads = 1;  // number of reinforced heads, which have the highest HeadScore::score()
  double amount = 1;       // number that is added to weights on reference tokens
  double threshold = 0;    // only weights above this threshold are increased
};

/// The configuration of `run` with reinforced heads. `task` is the task of the run, or another task
/// with the same vocabulary.
Config reinforced(const Config& run, std::string_view task, double threshold);

/// The model of a configuration that reinforced() returned. Its parameters come from a checkpoint
/// of the run. No head is reinforced yet: all amounts are 0.
std::unique_ptr<nn::Decoder> reinforced_model(const Config& config, Backend& backend,
                                              const std::filesystem::path& checkpoint);

/// The softmax heads of a ranking, in the order of the ranking. Only softmax heads can be
/// reinforced.
std::vector<HeadScore> softmax_heads(const nn::Decoder& model, std::span<const HeadScore> ranking);
/// Reinforces the first `count` heads of a ranking by `amount`, and all other heads by 0. Throws an
/// Error if the ranking has fewer than `count` heads.
void reinforce(const nn::Decoder& model, std::span<const HeadScore> ranking, std::int64_t count,
               double amount);

/// The values of each member of ReinforcementSetting that a search tries, in all combinations.
struct ReinforcementGrid {
  std::vector<std::int64_t> heads;
  std::vector<double> amounts, thresholds;
};
struct Tried {
  ReinforcementSetting setting;
  double score = 0;  // main metric of the task
  double loss = 0;   // mean loss over the answers' tokens
};
/// Scores every combination on samples of a task. The results are sorted by score, the highest
/// first. Results with equal scores are sorted by loss.
std::vector<Tried> search(const Config& run, const std::filesystem::path& checkpoint,
                          Backend& backend, std::span<const HeadScore> ranking,
                          const ReinforcementGrid& grid, const tasks::Task& task,
                          const EvaluationOptions& options);

}  // namespace longhand::app
