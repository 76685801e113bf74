#include "apps/run/ranking.h"

#include <algorithm>

#include "apps/run/evaluation.h"
#include "apps/run/test_scores.h"
#include "core/nearest.h"
#include "core/quote.h"

namespace longhand::app {
namespace {

std::string_view distribution_of(std::string_view score) {
  return score.substr(0, score.find('/'));
}

/// The reason why an evaluation of the run has no score on this distribution; empty if it has one.
std::string missing_on(const Config& run, const std::string& distribution) {
  try {
    const auto task = run.task(distribution);
    const std::string why = unreadable(run.model(*run.task()), *task);
    return why.empty() ? why : text(distribution, ": ", why);
  } catch (const Error& error) {  // there is no such distribution
    return error.what();
  }
}

/// The reason why an evaluation on this distribution lacks the metric by which runs are ranked;
/// empty if it has this metric.
std::string missing_in(const Config& run, const std::string& distribution,
                       const std::string& metric) {
  const std::vector<std::string> known =
      metric_names(*run.task(distribution),
                   {.samples = run.training().evaluate_samples, .seed = run.training().seed});
  if (std::ranges::count(known, metric) > 0) return {};
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  return text("expected one of the metrics ", list, ", got ", quote(metric),
              did_you_mean(metric, known));
}

}  // namespace

std::string_view metric_of(std::string_view score) { return score.substr(score.find('/') + 1); }

std::vector<std::string> ranking_scores(const Config& config, std::string_view wanted) {
  if (wanted.find('/') != std::string_view::npos) return {std::string(wanted)};
  // The main metric does not depend on the options of the task. It is read from a task with default
  // options, because making such a task opens no files.
  const std::string metric(config.kind().make(config.kind().defaults())->main_metric());
  if (!wanted.empty()) return {text(wanted, "/", metric)};
  std::vector<std::string> scores;
  for (const std::string& name : config.ranking_distributions()) {
    scores.push_back(text(name, "/", metric));
  }
  return scores;
}

std::string common_ranking_score(const std::vector<const Config*>& runs,
                                 const std::string& wanted) {
  std::string reason;
  for (const std::string& score : ranking_scores(*runs.front(), wanted)) {
    const std::string distribution(distribution_of(score)), metric(metric_of(score));
    std::string missing;
    for (const Config* run : runs) {
      missing = missing_on(*run, distribution);
      if (!missing.empty()) break;
    }
    if (missing.empty() && !wanted.empty()) {
      missing = missing_in(*runs.front(), distribution, metric);
    }
    if (missing.empty()) return score;
    if (reason.empty()) reason = missing;
  }
  wrong_usage("--by: ", reason);
}

CliFlag ranking_option(std::string_view default_score) {
  return {"by", "SCORE",
          text("score to rank by: DISTRIBUTION/METRIC, such as ood/tokens; DISTRIBUTION alone "
               "selects the main metric of the task; default: ",
               default_score)};
}

std::string ranking_from(const Arguments& arguments) {
  if (!arguments.given("by")) return {};
  const std::string& score = arguments.word("by");
  const std::size_t slash = score.find('/');
  if (slash == 0 || slash + 1 == score.size() || score.empty()) {
    wrong_usage("--by: expected DISTRIBUTION or DISTRIBUTION/METRIC, got ", quote(score));
  }
  return score;
}

}  // namespace longhand::app
