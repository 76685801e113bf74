#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "apps/run/config.h"

/// The score by which runs are ranked: a metric on a distribution, named as in metrics.jsonl, for
/// example "ood/sequences".
namespace longhand::app {

/// The scores that may rank a run, the preferred one first. By default, `wanted` is empty: the main
/// metric on each of Config::ranking_distributions(). Otherwise `wanted` is "DISTRIBUTION/METRIC",
/// or "DISTRIBUTION" for its main metric, and the result has one name.
std::vector<std::string> ranking_scores(const Config& config, std::string_view wanted = {});

/// The metric of a score: "sequences" for "ood/sequences".
std::string_view metric_of(std::string_view score);

/// The score that ranks all runs of a sweep. Throws a UsageError if an evaluation of one of the
/// runs has no such score, for example because its model cannot read the distribution's samples.
std::string common_ranking_score(const std::vector<const Config*>& runs,
                                 const std::string& wanted = {});

/// --by, for commands that rank runs.
CliFlag ranking_option();
/// The value of --by; empty if it is not given.
std::string ranking_from(const Arguments& arguments);

}  // namespace longhand::app
