#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "apps/run/config.h"

/// The score by which runs are ranked: a metric on a distribution, named as in metrics.jsonl, for
/// example "ood/sequences".
namespace longhand::app {

/// The names of the scores by which a run may be ranked, the preferred one first. By default, these
/// are the task's main metric on each of Config::ranking_distributions(). If `wanted` is
/// "DISTRIBUTION/METRIC", the result is only this score. A `wanted` of "DISTRIBUTION" stands for
/// the main metric on this distribution.
std::vector<std::string> ranking_scores(const Config& config, std::string_view wanted = {});

/// The metric of a score: "sequences" for "ood/sequences".
std::string_view metric_of(std::string_view score);

/// The score that ranks all runs of a sweep. Throws a UsageError if an evaluation of one of the
/// runs has no such score, for example because its model cannot read the distribution's samples.
std::string common_ranking_score(const std::vector<const Config*>& runs,
                                 const std::string& wanted = {});

/// --by, for commands that rank runs. `default_score` is the part of its help that describes the
/// default.
CliFlag ranking_option(std::string_view default_score);
/// The value of --by; empty if it is not given.
std::string ranking_from(const Arguments& arguments);

}  // namespace longhand::app
