#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/html/chart.h"
#include "apps/report.h"
#include "apps/run/run_folder.h"

namespace longhand::app {

/// The curve of one number in metrics.jsonl, whose key is `figure`, over the steps. Successive
/// steps are averaged, so that the curve has at most a few hundred points. If `head` is given, only
/// the steps that train this output head are used.
html::Series curve(const std::string& name, const std::vector<Json>& metrics,
                   std::string_view figure, std::string_view head = {});

/// The report of a run as one page: curves, evaluations, the command that repeats the run, and the
/// configuration.
std::string run_report(const RunFolder& folder);

}  // namespace longhand::app
