#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "apps/run/reference_scores.h"
#include "apps/run/run_folder.h"

/// Selected softmax heads that attend more to a task's reference tokens (core/contract/reinforce.h;
/// AttentionSpan, section 6.1).
namespace longhand::app {

struct ReinforcementSetting {
  std::int64_t heads = 1;  // N: the first heads of a ranking
  double amount = 1;       // delta, added to their weights on reference tokens
  double threshold = 0;    // C, which such a weight must exceed
};

/// The model of a run with reinforced heads, for its task or another with the same vocabulary.
Config reinforced(const Config& run, std::string_view task, double threshold);

/// This model with the values of a checkpoint of the run; all amounts are 0.
std::unique_ptr<nn::Decoder> reinforced_model(const Config& config, Backend& backend,
                                              const std::filesystem::path& checkpoint);

/// The softmax heads of a ranking, in order; only these can be reinforced.
std::vector<HeadScore> softmax_heads(const nn::Decoder& model, std::span<const HeadScore> ranking);
/// Sets the amount of the first `count` heads of a ranking, and 0 for all others. Throws an Error
/// if the ranking has fewer heads.
void reinforce(const nn::Decoder& model, std::span<const HeadScore> ranking, std::int64_t count,
               double amount);

/// The values of which all combinations are tried.
struct ReinforcementGrid {
  std::vector<std::int64_t> heads;
  std::vector<double> amounts, thresholds;
};
struct Tried {
  ReinforcementSetting setting;
  double score = 0;  // main metric of the task
  double loss = 0;   // mean over the answers' tokens
};
/// Scores every combination on samples of a task. Sorted by score, highest first; equal scores by
/// loss.
std::vector<Tried> search(const Config& run, const std::filesystem::path& checkpoint,
                          Backend& backend, std::span<const HeadScore> ranking,
                          const ReinforcementGrid& grid, const tasks::Task& task,
                          const EvaluationOptions& options);

}  // namespace longhand::app
