// Tests sweeps by successive halving: all settings are trained for a few steps, then only the
// better ones are trained further.
#include <filesystem>

#include "apps/run/halving.h"
#include "tests/program.h"

namespace halving_test {

using namespace longhand;
using app::HalvingStage;

/// The command line of a sweep by successive halving over five learning rates. `steps` is the
/// number of steps of the best run, `samples` the number of evaluated samples.
std::string halved_with(int steps, int samples) {
  return text("sweep --task reversal --task.length 1-3 --layers 1 --heads softmax:2 --width 8 ",
              "--batch 4 --threads 1 --quiet --out s --grid rate=1e-4,1e-3,3e-3,1e-2,3e-2 ",
              "--steps ", steps, " --evaluate-samples ", samples, " --halving 2 ");
}
const std::string halved = halved_with(16, 20);

}  // namespace halving_test

BOOST_FIXTURE_TEST_SUITE(halving_test, Program)

using namespace halving_test;

BOOST_AUTO_TEST_CASE(each_stage_keeps_the_best_share_until_one_setting_remains) {
  using Stages = std::vector<HalvingStage>;
  BOOST_TEST((app::halving_stages(9, 3, 900) == Stages{{9, 100}, {3, 300}, {1, 900}}));
  BOOST_TEST((app::halving_stages(5, 2, 16) == Stages{{5, 2}, {3, 4}, {2, 8}, {1, 16}}));
  BOOST_TEST((app::halving_stages(1, 4, 7) == Stages{{1, 7}}));
  BOOST_TEST(contains(refusal([] { app::halving_stages(9, 3, 8); }),
                      "halving: 8 steps are too few for 3 stages"));
  BOOST_TEST(
      contains(refusal([] { app::halving_stages(9, 1, 8); }), "expected a factor of at least 2"));
  using Places = std::vector<std::size_t>;
  const std::vector<app::HalvingScore> scores{{0.5, 2}, {0.7, 9}, {0.5, 1}, {0.9, 9}, {0.5, 1}};
  BOOST_TEST((app::best_of(scores, false, 3) == Places{3, 1, 2}));
  BOOST_TEST((app::best_of(scores, true, 3) == Places{2, 4, 0}));
}

BOOST_AUTO_TEST_CASE(the_best_settings_continue_their_own_runs) {
  const Json told = json(halved + "--json");
  BOOST_TEST(told["stages"].size() == 4u);
  BOOST_REQUIRE(told["rows"].size() == 5u);
  const std::vector<std::int64_t> steps{16, 8, 4, 2, 2};
  for (std::size_t i = 0; i < 5; ++i) {
    const Json& row = told["rows"][i];
    BOOST_TEST(row["steps"].integer() == steps[i]);
    const std::string run = "s/" + row["runs"][0].string();
    BOOST_TEST(metrics(run).back()["step"].integer() == steps[i]);
    // At every stage, no setting that was dropped may have a better score than a setting that
    // continued.
    for (std::size_t k = 0; k + 1 < row["means"].size(); ++k) {
      for (const Json& other : told["rows"]) {
        if (other["means"].size() != k + 1) continue;
        BOOST_TEST(other["means"][k].number() <= row["means"][k].number());
      }
    }
  }
  BOOST_TEST(told["rows"][0]["rate"] != "1e-4");  // this learning rate is too low to be the best
  const std::string page = contents(folder / "s/report.html");
  BOOST_TEST(contains(page, "Who was dropped when"));
  // The best run was continued at each stage. It has the same bits as an uninterrupted run.
  const std::string best = "s/" + told["rows"][0]["runs"][0].string();
  BOOST_TEST((*this)(text("train --config ", best, "/config.ini --quiet --out alone")).status == 0);
  BOOST_TEST(checkpoint("alone", 16) == checkpoint(best, 16));
  // Running the same sweep again reports the same rows.
  BOOST_TEST(json(halved + "--json")["rows"] == told["rows"]);
}

BOOST_AUTO_TEST_CASE(halving_can_be_resumed_and_divided_among_processes) {
  BOOST_TEST(!json(halved + "--max-minutes 0 --json")["finished"].boolean());
  // Two processes share the sweep: --only 1/2 and --only 2/2. Each stops before a stage that needs
  // runs of the other process.
  BOOST_TEST(!json(halved + "--only 1/2 --json")["finished"].boolean());
  Json last;
  for (int round = 0; round < 4; ++round) {
    for (const char* part : {"2/2", "1/2"}) {
      last = json(text(halved, "--json --only ", part));
      if (last.contains("rows")) break;
    }
    if (last.contains("rows")) break;
  }
  BOOST_REQUIRE(last.contains("rows"));
  std::filesystem::rename(folder / "s", folder / "shared");
  const Json whole = json(halved + "--json");
  BOOST_TEST(whole["rows"] == last["rows"]);
}

BOOST_AUTO_TEST_CASE(settings_that_cannot_be_halved_are_refused) {
  refuses(2, halved_with(4, 20), "--halving: halving: 4 steps are too few for 4 stages");
  refuses(2, halved_with(16, 0),
          "--evaluate-samples: expected a number above 0, because a sweep ranks runs");
  refuses(2, halved + "--grid steps=8,16", "--halving cannot be combined with --grid steps=");
  std::filesystem::remove_all(folder / "s");
  std::string whole = halved;
  whole.resize(whole.find("--halving"));
  BOOST_TEST((*this)(whole).status == 0);
  refuses(1, halved, "use a folder that no other sweep writes to");
}

BOOST_AUTO_TEST_SUITE_END()
