#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/html/chart.h"
#include "apps/report.h"
#include "apps/run/run_folder.h"

namespace longhand::app {

/// A number of metrics.jsonl against the step, averaged to a few hundred points. With `head`, only
/// steps of that output head.
html::Series curve(const std::string& name, const std::vector<Json>& metrics,
                   std::string_view figure, std::string_view head = {});

/// Curves, evaluations, the command to repeat the run, and the configuration, as one page.
std::string run_report(const RunFolder& folder);

}  // namespace longhand::app
