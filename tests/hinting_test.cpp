// Tests the grids (lists of independent runs) of the task-hinting recipes.
#include "apps/recipes/hinting.h"

#include <cmath>
#include <set>
#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(hinting_test)

using namespace longhand;
using namespace longhand::app;

namespace {

std::map<std::string, Config> runs_of(const std::string& id, app::Scale scale) {
  std::map<std::string, Config> runs;
  for (const GridRun& run : recipes().at(id).runs({.scale = scale, .out = "x"})) {
    BOOST_TEST(runs.emplace(run.name, run.config).second, id << " has " << run.name << " twice");
  }
  return runs;
}

std::set<std::string> grids() {
  std::set<std::string> ids;
  for (const auto& [id, recipe] : recipes()) {
    if (id.starts_with("hinting/") && recipe.runs) ids.insert(id);
  }
  return ids;
}

}  // namespace

// These tests check the lists of runs of the hinting recipes. grid_test.cpp tests that the settings
// of all runs are valid.
BOOST_AUTO_TEST_CASE(every_figure_of_the_paper_is_a_grid) {
  const std::set<std::string> expected{"hinting/fig3.11",  "hinting/fig3.2",    "hinting/fig3.3",
                                       "hinting/fig3.5",   "hinting/fig3.6",    "hinting/fig3.8",
                                       "hinting/fig4.12",  "hinting/fig4.15",   "hinting/table1",
                                       "hinting/table2",   "hinting/table3",    "hinting/readings",
                                       "hinting/tempered", "hinting/positions", "hinting/copies"};
  BOOST_TEST(grids() == expected);
}

// Two recipes may list a run of the same name. The run is trained once, so both must give it the
// same configuration.
BOOST_AUTO_TEST_CASE(each_run_name_has_one_configuration) {
  for (const app::Scale scale :
       {app::Scale::smoke, app::Scale::laptop, app::Scale::paper, app::Scale::extended}) {
    std::map<std::string, std::string> seen;
    int shared = 0;
    for (const std::string& id : grids()) {
      for (const auto& [name, config] : runs_of(id, scale)) {
        const auto [place, fresh] = seen.emplace(name, config.ini());
        BOOST_TEST(place->second == config.ini(), name);
        shared += !fresh;
      }
    }
    BOOST_TEST(shared >= 8);
  }
}

BOOST_AUTO_TEST_CASE(the_paper_scale_has_the_sizes_of_the_paper) {
  const auto runs = runs_of("hinting/table2", app::Scale::paper);
  BOOST_TEST(runs.size() == 2u);
  const Config& config = runs.at("sorting-successor-tempered-160M");
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"model.width", "1024"},
                                          {"model.inner", "2048"},
                                          {"model.heads", "softmax:16"},
                                          {"model.layers", "2"},
                                          {"model.positions", "none"},
                                          {"model.temper", "position"},
                                          {"task.hint", "successor"},
                                          {"training.set", "160000000"},
                                          {"training.steps", "100000"},
                                          {"training.batch", "1024"},
                                          {"training.rate", "1e-5"},
                                          {"training.schedule", "cosine"},
                                          {"model.output_bias", "1"}}) {
    BOOST_TEST(config.text(key) == value, key);
  }
  const auto model = config.model(*config.task());
  BOOST_TEST(model.vocabulary == 103);
  BOOST_TEST(model.outputs.size() == 2u);
  BOOST_TEST(runs.at("sorting-successor-standard-160M").text("model.temper") == "none");
  const auto increment = runs_of("hinting/table3", app::Scale::paper);
  BOOST_TEST(increment.at("increment-carry-standard-1M-4-layers").text("model.layers") == "4");
  BOOST_TEST(runs_of("hinting/fig3.3", app::Scale::paper).size() == 4u);
  BOOST_TEST(runs_of("hinting/fig3.6", app::Scale::paper)
                 .at("sorting-successor-standard-160M-repetitions")
                 .text("task.repetition") == "0.1");
}

// The warm-up takes ten epochs, but at most a tenth of the 100,000 steps. Ten epochs of 1 million
// samples are 9765 steps of 1024 samples.
BOOST_AUTO_TEST_CASE(the_paper_scale_warms_up_for_ten_epochs) {
  BOOST_TEST(
      runs_of("hinting/table3", app::Scale::paper).begin()->second.text("training.warm_up") ==
      "9765");
  BOOST_TEST(
      runs_of("hinting/table1", app::Scale::paper).begin()->second.text("training.warm_up") ==
      "10000");
}

BOOST_AUTO_TEST_CASE(the_extended_scale_has_the_samples_of_the_paper) {
  const auto samples = [](app::Scale scale) {
    const Config config = runs_of("hinting/fig3.6", scale).begin()->second;
    return config.training().schedule.steps * config.training().batch;
  };
  BOOST_TEST(samples(app::Scale::extended) == 102'400'000);
  BOOST_TEST(samples(app::Scale::extended) == samples(app::Scale::paper));
  BOOST_TEST(runs_of("hinting/fig3.6", app::Scale::extended).size() == 6u);
  const auto readings = runs_of("hinting/readings", app::Scale::extended);
  BOOST_TEST(readings.size() == 2u);
  BOOST_TEST(readings.at("sorting-successor-standard-160M-repetitions").text("task.successor") ==
             "greater");
  BOOST_TEST(
      readings.at("sorting-successor-standard-160M-repetitions-copies").text("task.successor") ==
      "copy");
}

BOOST_AUTO_TEST_CASE(runs_of_a_model_differ_in_their_seed_alone) {
  const std::string name = "sorting-none-tempered-160M";
  for (const std::int64_t asked : {0, 2}) {
    const auto all =
        recipes()
            .at("hinting/table1")
            .runs({.scale = app::Scale::laptop, .seed = 7, .seeds = asked, .out = "x"});
    std::map<std::string, std::string> seeds;
    std::set<std::string> others;
    for (const GridRun& run : all) {
      if (!run.name.starts_with(name)) continue;
      seeds[run.name] = run.config.text("training.seed");
      Config same = run.config;
      same.set("training.seed", "1");
      others.insert(same.ini());
    }
    std::map<std::string, std::string> expected{{name, "7"}, {name + "-seed-8", "8"}};
    if (asked == 0) expected[name + "-seed-9"] = "9";
    BOOST_TEST(seeds == expected);
    BOOST_TEST(others.size() == 1u);
  }
  // Figure 4.12 draws the run of the first seed. Its ranks are computed from the runs of all three
  // seeds.
  BOOST_TEST(runs_of("hinting/fig4.12", app::Scale::laptop).size() == 3u);
}

BOOST_AUTO_TEST_CASE(shares_of_several_runs_are_reported_as_a_mean_and_single_values) {
  const auto run_with = [](std::int64_t hits) {
    SweepPoint point{.values = {"25"}, .task = nullptr};
    point.tally.add_share("sequences", hits, 100);
    return std::vector{point};
  };
  RecipeResult several;
  add_share(several, "row", "25", {run_with(60), run_with(70), run_with(80)}, 0, 0.5);
  BOOST_REQUIRE(several.rows.size() == 4u);
  const Row& mean = several.rows[0];
  BOOST_TEST(mean.value == 0.7, boost::test_tools::tolerance(1e-12));
  // The standard deviation s of the three runs is 0.1, and Student's t for two degrees of freedom
  // is 4.302653. The interval extends t s / sqrt(3) to both sides of the mean.
  BOOST_TEST(*mean.low == 0.7 - 0.4302653 / std::sqrt(3.0), boost::test_tools::tolerance(1e-6));
  BOOST_TEST(*mean.paper == 0.5);
  BOOST_TEST(mean.in_table);
  BOOST_TEST(several.rows[3].value == 0.8);
  BOOST_TEST(several.rows[3].column == "25, run 3");
  BOOST_TEST(!several.rows[3].in_table);
  BOOST_TEST(!several.rows[3].paper.has_value());

  RecipeResult one;
  add_share(one, "row", "25", {run_with(60)}, 0);
  BOOST_REQUIRE(one.rows.size() == 1u);
  BOOST_TEST(*one.rows[0].low == tasks::wilson(60, 100).low);
}

BOOST_AUTO_TEST_SUITE_END()
