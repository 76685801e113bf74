#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "apps/run/reference_scores.h"
#include "apps/run/run_folder.h"

/// Chosen softmax heads that look more at a task's reference attention (core/contract/reinforce.h;
/// AttentionSpan, section 6.1).
namespace longhand::app {

struct ReinforcementSetting {
  std::int64_t heads = 1;  // N: so many, the first of a ranking
  double amount = 1;       // delta, added to their weights of reference tokens
  double threshold = 0;    // C, which such a weight must exceed
};

/// The model of a run under its task or another of its vocabulary, with reinforced heads.
Config reinforced(const Config& run, std::string_view task, double threshold);

/// That model with the values of a checkpoint of the run; no head has an amount yet.
std::unique_ptr<nn::Decoder> reinforced_model(const Config& config, Backend& backend,
                                              const std::filesystem::path& checkpoint);

/// The softmax heads of a ranking, in its order: only they can be reinforced.
std::vector<HeadScore> softmax_heads(const nn::Decoder& model, std::span<const HeadScore> ranking);
/// The first `count` heads of a ranking get the amount, all others none. An Error where it has
/// fewer.
void reinforce(const nn::Decoder& model, std::span<const HeadScore> ranking, std::int64_t count,
               double amount);

/// All combinations of these are tried.
struct ReinforcementGrid {
  std::vector<std::int64_t> heads;
  std::vector<double> amounts, thresholds;
};
struct Tried {
  ReinforcementSetting setting;
  double score = 0;  // the task's main metric
  double loss = 0;   // the mean over the answers' tokens
};
/// Every combination scored on a task's samples: the best score first, among equal ones the lowest
/// loss.
std::vector<Tried> search(const Config& run, const std::filesystem::path& checkpoint,
                          Backend& backend, std::span<const HeadScore> ranking,
                          const ReinforcementGrid& grid, const tasks::Task& task,
                          const EvaluationOptions& options);

}  // namespace longhand::app
