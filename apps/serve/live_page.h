#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/serve/http_server.h"
#include "apps/serve/live_runs.h"

namespace longhand::app {

/// Responds to the requests of the live page. Requests with POST change state and require the token
/// that `longhand serve` printed.
///
///   GET  /, /page.js, ...     the page itself
///   GET  /api/runs            state and latest figures of every run, and of the machine
///   GET  /api/series          ?runs=1,2&figures=loss,rate[&from=&to=][&points=]: thinned curves
///   GET  /api/run?run=1       settings, evaluation, samples and pages of a run
///   GET  /page?run=1&name=    one of the run's pages
///   POST /api/stop?run=1      stops the training of a run
///   POST /api/resume?run=1    resumes the training of a run
///   POST /api/look?run=1      starts `longhand inspect` for a run
class LivePage {
 public:
  LivePage(std::vector<std::filesystem::path> folders, std::string token);
  HttpResponse answer(const HttpRequest& request);

 private:
  HttpResponse get(const HttpRequest& request);
  HttpResponse post(const HttpRequest& request);
  HttpResponse list_runs();
  HttpResponse series(const HttpRequest& request);
  HttpResponse describe(LiveRun& run);
  Json row_of(int number, LiveRun& run, std::chrono::steady_clock::time_point until);

  LiveRuns runs_;
  std::string folder_, token_;
};

}  // namespace longhand::app
