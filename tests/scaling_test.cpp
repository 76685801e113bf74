// Tests of the scaling studies, which measure the error for several numbers of training samples:
// their runs, result rows and fitted power laws. The models are too small to learn much.
#include <algorithm>
#include <cmath>
#include <set>
#include "tests/check.h"

#include "apps/recipes/scaling.h"
#include "core/error.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(scaling_test)

using namespace longhand;
using namespace longhand::app;

namespace {

std::int64_t samples_of(const GridRun& run) {
  return run.last_step() * run.config.training().batch;
}

/// All text that a study writes in its report.
std::string told(const RecipeResult& result) {
  std::string all;
  for (const auto& [heading, content] : result.sections) all += heading + "\n" + content;
  return all;
}

RecipeResult make(const std::string& id, const TemporaryFolder& folder, Settings settings) {
  RecipeOptions options{.seeds = 1, .out = folder / id.substr(8)};
  options.control.quiet = true;
  settings.insert({{"model.inner", "8"}, {"training.batch", "1"}, {"compute.threads", "1"}});
  options.settings = std::move(settings);
  return recipes().at(id).run(options);
}

}  // namespace

// A study trains with several numbers of samples, each four times the previous one. At the scale
// `paper`, the largest of them is the number of training samples in the paper.
BOOST_AUTO_TEST_CASE(sizes_increase_by_factors_of_four_up_to_the_papers_size) {
  const std::map<std::string, std::int64_t> papers{{"scaling/flip-flop", 1'536'000},
                                                   {"scaling/chains", 3'072'000},
                                                   {"scaling/sorting", 102'400'000}};
  for (const auto& [id, paper] : papers) {
    for (const app::Scale scale : {app::Scale::smoke, app::Scale::laptop, app::Scale::paper}) {
      std::set<std::int64_t> samples, widths, seeds;
      for (const GridRun& run : recipes().at(id).runs({.scale = scale, .out = "x"})) {
        samples.insert(samples_of(run));
        widths.insert(run.config.model_settings().decoder.width);
        seeds.insert(run.config.training().seed);
        BOOST_TEST(run.config.training().schedule.warm_up <= run.last_step() / 3);
      }
      BOOST_TEST_CONTEXT(id << ", " << name_of(scale)) {
        BOOST_TEST(samples.size() >= 3u);
        for (auto at = samples.begin(), next = std::next(at); next != samples.end(); ++at, ++next) {
          BOOST_TEST(*next == 4 * *at);
        }
        BOOST_TEST(widths.size() == 3u);
        BOOST_TEST(*widths.rbegin() == 4 * *widths.begin());
        BOOST_TEST(seeds.size() == 3u);
        if (scale == app::Scale::paper) BOOST_TEST(*samples.rbegin() == paper);
        if (scale != app::Scale::paper) BOOST_TEST(*samples.rbegin() < paper);
      }
    }
  }
}

// Fits with three points for each of the sizes 100, 400 and 1600 samples. At some points, all
// answers or no answers are wrong.
BOOST_AUTO_TEST_CASE(a_fit_is_given_only_if_it_is_meaningful) {
  const auto points = [](double first, double second, double third) {
    std::vector<scaling::Scored> all;
    for (const double noise : {0.97, 1.0, 1.03}) {
      for (const auto& [n, e] : {std::pair{100.0, first}, {400.0, second}, {1600.0, third}}) {
        all.push_back({.size = n, .error = e * noise, .trials = 100});
      }
    }
    return all;
  };
  const scaling::Fit falls = scaling::fit(points(0.4, 0.2, 0.1));
  BOOST_REQUIRE(falls.law.has_value());
  BOOST_TEST(falls.why_none.empty());
  BOOST_TEST(std::abs(falls.law->exponent - 0.5) < 1e-9);
  BOOST_TEST(*falls.law->straight > 0.9);
  const scaling::Fit jumps = scaling::fit(points(0.4, 0.4, 0.01));
  BOOST_REQUIRE(jumps.law.has_value());
  BOOST_TEST(*jumps.law->straight < 0.001);
  const scaling::Fit level = scaling::fit(points(0.4, 0.4, 0.4));
  BOOST_TEST(!level.law.has_value());
  BOOST_TEST(level.why_none.starts_with("no slope: b "));
  // The error increases with the number of samples, so there is no fit.
  BOOST_TEST(!scaling::fit(points(0.1, 0.2, 0.4)).law.has_value());

  auto some = points(1, 0.2, 0.1);
  for (scaling::Scored& point : some) point.all_wrong = point.size == 100;
  BOOST_TEST(scaling::fit(some).why_none == "too few points");
  for (scaling::Scored& point : some) point.all_wrong = true;
  BOOST_TEST(scaling::fit(some).why_none == "all is wrong at every size");
  auto none = points(0.01, 0.01, 0.01);
  for (scaling::Scored& point : none) point.none_wrong = true;
  BOOST_TEST(scaling::fit(none).why_none == "nothing is wrong at any size");
  none[0].none_wrong = false;
  BOOST_TEST(scaling::fit(none).none_wrong == 8);
  BOOST_TEST(scaling::fit({}).why_none == "too few points");
}

// With one seed, there is one point per size, so the fit has three points.
BOOST_AUTO_TEST_CASE(a_study_reports_every_size_the_fit_and_the_papers_figures) {
  const TemporaryFolder folder;
  const RecipeResult result =
      make("scaling/chains", folder,
           {{"task.blocks", "2"}, {"task.size", "2"}, {"model.heads", "softmax:1"}});
  BOOST_TEST(!result.stopped);
  const std::string all = told(result);
  std::set<std::string> rows;
  for (const Row& row : result.rows) {
    BOOST_TEST(std::isfinite(row.value));
    BOOST_TEST(row.value >= 0);
    if (row.low) BOOST_TEST(*row.low <= row.value);
    if (row.high) BOOST_TEST(row.value <= *row.high);
    BOOST_TEST(rows.insert(row.row + ": " + row.column).second, row.row << ": " << row.column);
  }
  for (const char* at : {"100", "400", "1600"}) {
    BOOST_TEST(rows.contains(text("Standard L=1: loss at ", at, " samples")), at);
  }
  for (const char* width : {"16", "32", "64"}) {
    BOOST_TEST(rows.contains(text("ChaCAL L=1: choices, wrong at ", width, " columns")), width);
  }
  BOOST_TEST(contains(all, "paper: Standard L=1</text>"));
  // The paper prints an accuracy of 1.00 and a loss of 0.00, so the paper's errors are below 0.005.
  BOOST_TEST(contains(all, "paper: ChaCAL L=1, below</text>"));
  BOOST_TEST(contains(all, "&lt; 0.005"));
  BOOST_TEST(contains(all, ">0.501<"));
  // The report contains either a fit at the paper's number of samples, or the reason why there is
  // none.
  const bool fitted = std::ranges::any_of(
      rows, [](const std::string& row) { return row.ends_with("fit at 3.072M samples"); });
  BOOST_TEST((fitted || all.find("no slope") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(a_study_of_one_size_gives_no_fit) {
  const TemporaryFolder folder;
  const RecipeResult result = make("scaling/flip-flop", folder,
                                   {{"training.steps", "2"},
                                    {"training.warm_up", "1"},
                                    {"task.instructions", "8"},
                                    {"model.width", "16"},
                                    {"model.layers", "1"}});
  const std::string all = told(result);
  BOOST_TEST(contains(all, "too few points"));
  for (const Row& row : result.rows) {
    BOOST_TEST(row.column.find("fit at") == std::string::npos);
    BOOST_TEST(!row.column.ends_with(", b"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
