#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/html/chart.h"
#include "apps/report.h"
#include "apps/run/run_folder.h"

namespace longhand::app {

/// One figure of metrics.jsonl against the step, averaged down to some hundred points; with `head`
/// only over the steps of that output head.
html::Series curve(const std::string& name, const std::vector<Json>& metrics,
                   std::string_view figure, std::string_view head = {});

/// Curves, evaluations, how to make it again and the configuration, as one page.
std::string run_report(const RunFolder& folder);

}  // namespace longhand::app
