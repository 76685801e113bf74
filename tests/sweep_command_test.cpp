// Tests the command `longhand sweep`: a grid of runs with its table and its chart.
#include <filesystem>

#include "tests/program.h"

namespace sweep_command_test {

using namespace longhand;

const std::string small =
    "sweep --task reversal --task.length 1-3 --layers 1 --heads softmax:2 --width 8 --steps 2 "
    "--batch 2 --evaluate-samples 4 --threads 1 --quiet --out s ";

}  // namespace sweep_command_test

BOOST_FIXTURE_TEST_SUITE(sweep_command_test, Program)

using sweep_command_test::small;

BOOST_AUTO_TEST_CASE(a_sweep_trains_a_grid_and_writes_a_report) {
  const std::string grid = "--grid rate=1e-3,3e-3 --grid heads='softmax:2|softmax:1,fal:1' ";
  const Json told = json(small + grid + "--seeds 2 --json");
  BOOST_REQUIRE(told["rows"].size() == 4u);
  BOOST_TEST(told["metric"] == "ood/sequences");
  double before = 1;
  for (const Json& row : told["rows"]) {
    BOOST_TEST(row["scores"].size() == 2u);
    BOOST_TEST(row["value"].number() <= before);  // the best row is first
    before = row["value"].number();
    for (const Json& run : row["runs"]) {
      const std::string config = contents(folder / "s" / run.string() / "config.ini");
      BOOST_TEST(contains(config, "rate = " + row["rate"].string()));
      BOOST_TEST(contains(config, "heads = " + row["heads"].string()));
    }
  }
  BOOST_TEST(std::filesystem::exists(folder / "s/rate-3e-3-heads-softmax_1_fal_1-seed-2"));
  const std::string page = contents(folder / "s/report.html");
  BOOST_TEST(contains(page, "href=\"./rate-1e-3-heads-softmax_2-seed-1/report.html\""));
  BOOST_TEST(contains(page, "<svg"));
  // Running the sweep again trains nothing and reports everything.
  const auto written =
      std::filesystem::last_write_time(folder / "s/rate-1e-3-heads-softmax_2-seed-1/metrics.jsonl");
  BOOST_TEST(json(small + grid + "--seeds 2 --json")["rows"] == told["rows"]);
  BOOST_TEST((std::filesystem::last_write_time(
                  folder / "s/rate-1e-3-heads-softmax_2-seed-1/metrics.jsonl") == written));
  // A single run with the same settings has the same bits.
  BOOST_TEST((*this)("train --config s/rate-3e-3-heads-softmax_2-seed-2/config.ini --quiet --out a")
                 .status == 0);
  BOOST_TEST(checkpoint("a", 2) == checkpoint("s/rate-3e-3-heads-softmax_2-seed-2", 2));
  // A sweep refuses existing runs that have the same names but other settings.
  refuses(
      1, small + grid + "--seeds 2 --warm-up 7",
      "holds a run with another configuration: training.warm_up is \"100\" there and \"7\" here");
}

BOOST_AUTO_TEST_CASE(runs_of_a_sweep_can_be_divided_and_resumed) {
  const std::string grid = "--grid rate=1e-3,2e-3,3e-3 ";
  const auto listed = (*this)(small + grid + "--list-runs");
  BOOST_TEST(listed.out == "s/rate-1e-3-seed-1\ns/rate-2e-3-seed-1\ns/rate-3e-3-seed-1\n");
  BOOST_TEST(!std::filesystem::exists(folder / "s"));
  BOOST_TEST(!json(small + grid + "--only 1/2 --json")["finished"].boolean());
  BOOST_TEST(std::filesystem::exists(folder / "s/rate-3e-3-seed-1"));
  BOOST_TEST(!std::filesystem::exists(folder / "s/rate-2e-3-seed-1"));
  BOOST_TEST(!std::filesystem::exists(folder / "s/report.html"));
  BOOST_TEST(json(small + grid + "--only 2/2 --json")["rows"].size() == 3u);
  BOOST_TEST(std::filesystem::exists(folder / "s/report.html"));
}

BOOST_AUTO_TEST_CASE(a_sweep_is_ranked_by_a_chosen_score) {
  const std::string grid = "--grid rate=1e-3,3e-3,1e-2 --json ";
  const Json told = json(small + grid + "--by train/tokens");
  BOOST_TEST(told["metric"] == "train/tokens");
  double before = 1;
  for (const Json& row : told["rows"]) {
    const std::string run = row["runs"][0].string();
    const Json scores = json("describe s/" + run + " --json")["figures"];
    BOOST_TEST(row["value"].number() == scores["train/tokens"]["value"].number());
    BOOST_TEST(row["value"].number() <= before);
    before = row["value"].number();
  }
  BOOST_TEST(contains(contents(folder / "s/report.html"), "train/tokens"));
  // If --by names only a distribution, its main metric is used. The runs are not trained again.
  BOOST_TEST(json(small + grid + "--by train")["metric"] == "train/sequences");

  // Smaller edit distances are better, so the rows are in ascending order.
  const std::string sorting =
      "sweep --task sorting --layers 1 --heads softmax:2 --width 8 --steps 2 --batch 2 "
      "--evaluate-samples 4 --threads 1 --quiet --out d --json --grid rate=1e-3,1e-2,1e-1 ";
  before = 0;
  const Json ascending = json(sorting + "--by length-50/edit-distance");
  for (const Json& row : ascending["rows"]) {
    BOOST_TEST(row["value"].number() >= before);
    before = row["value"].number();
  }
  BOOST_TEST(before > 0);
}

BOOST_AUTO_TEST_CASE(a_score_that_the_runs_will_not_have_is_refused_before_training) {
  const std::string grid = small + "--grid rate=1e-3,3e-3 ";
  refuses(2, grid + "--by odd",
          "--by: task reversal: expected one of the distributions train, ood");
  refuses(
      2, grid + "--by ood/tokenz",
      "--by: expected one of the metrics sequences, tokens, got \"tokenz\"; did you mean tokens?");
  refuses(2, grid + "--by ood/", "--by: expected DISTRIBUTION or DISTRIBUTION/METRIC");
  std::string unscored = grid;
  unscored.replace(unscored.find("samples 4"), 9, "samples 0");
  refuses(2, unscored, "--evaluate-samples: expected a number above 0");
  // The samples of the distribution `ood` are longer than the learned positions allow. So the runs
  // are ranked by another distribution, whose samples every run of the grid can read.
  const std::string learned = small + "--grid positions='learned|rotary' ";
  refuses(2, learned + "--by ood", "--by: ood: samples of up to");
  BOOST_TEST(!std::filesystem::exists(folder / "s"));
  BOOST_TEST(json(learned + "--json")["metric"] == "train/sequences");
}

BOOST_AUTO_TEST_CASE(broken_grids_are_refused) {
  refuses(2, small, "--grid is missing");
  refuses(2, small + "--grid rate", "NAME=VALUE");
  refuses(2, small + "--grid rtae=1", "did you mean rate?");
  refuses(2, small + "--grid rate=1,,2", "expected non-empty values without duplicates");
  refuses(2, small + "--grid rate=1 --grid training.rate=2", "twice");
  refuses(2, small + "--grid rate=fast", "rate");
  refuses(2, small + "--grid seed=1,2", "--grid");
  refuses(2, small + "--grid rate=1e-3 --only 3", "--only");
}

BOOST_AUTO_TEST_SUITE_END()
