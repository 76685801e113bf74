// Tests what the program prints about a run (its settings and the shapes of its tensors), about its
// own version, and about a training before it starts.
#include "apps/run/plan.h"

#include "tests/program.h"

namespace describe_command_test {

using namespace longhand;

const std::string small =
    "train --task reversal --task.length 1-3 --layers 2 --heads softmax:2 --width 8 --steps 4 "
    "--batch 2 --evaluate-every 2 --evaluate-samples 2 --threads 1 --out run";

}  // namespace describe_command_test

BOOST_FIXTURE_TEST_SUITE(describe_command_test, Program)

BOOST_AUTO_TEST_CASE(a_run_is_described_from_its_files) {
  BOOST_REQUIRE((*this)(small + " --quiet").status == 0);
  const Json facts = json("describe run --json");
  BOOST_TEST(facts["task"] == "reversal");
  BOOST_TEST(facts["state"] == "finished");
  BOOST_TEST(facts["best"].is_integer());
  BOOST_TEST(facts["heads_of_layers"].size() == 2u);
  BOOST_TEST(facts["settings"]["model.width"] == "8");
  // The numbers of parameters in the rows of the description must add up to the number in the
  // checkpoint.
  std::int64_t numbers = 0, stored = 0;
  bool blocks = false;
  for (const Json& row : facts["tensors"]) {
    numbers += row["numbers"].integer();
    BOOST_TEST(row["learn"] == row["numbers"]);
    if (row["name"].string().starts_with("blocks.*.")) {
      blocks = true;
      BOOST_TEST(row["times"].integer() == 2);
    }
  }
  const SafetensorsFile file = model("run", 4);
  for (const SafetensorsEntry& entry : file.entries()) stored += entry.shape.size();
  BOOST_TEST(blocks);
  BOOST_TEST(numbers == stored);
  BOOST_TEST(facts["parameters"].integer() == stored);
  BOOST_TEST(facts["figures"]["train/sequences"]["interval"].size() == 2u);
  const std::string shown = (*this)("describe run").out;
  for (const char* part : {"blocks.*.", "train/sequences", "checkpoints", "rate"}) {
    BOOST_TEST(contains(shown, part));
  }
  refuses(1, "describe none", "none");
  refuses(2, "describe", "one run");
}

BOOST_AUTO_TEST_CASE(training_prints_its_plan_first) {
  const Outcome trained = (*this)(small);
  BOOST_TEST(trained.status == 0);
  BOOST_TEST(contains(trained.err, "# 4 steps, about 2 sequences and "));
  BOOST_TEST(contains(trained.err, "of disk free"));
  BOOST_TEST(contains((*this)("train --resume run").err,
                      "run: finished after step 4; nothing is left to train. `longhand train "
                      "--resume run --steps N` trains it further\n"));
  std::filesystem::remove(folder / "run/checkpoints/step-4/score");
  BOOST_TEST(contains((*this)("train --resume run").err, "# continues after step 4; 4 steps"));
}

BOOST_AUTO_TEST_CASE(durations_are_shown_in_a_fitting_unit) {
  using app::time_in_words;
  BOOST_TEST(time_in_words(0.01) == "1 s");
  BOOST_TEST(time_in_words(100) == "100 s");
  BOOST_TEST(time_in_words(720) == "12 min");
  BOOST_TEST(time_in_words(3.5 * 3600) == "3.5 h");
  BOOST_TEST(time_in_words(30 * 3600) == "30 h");
  BOOST_TEST(time_in_words(4 * 86400) == "4.0 days");
}

BOOST_AUTO_TEST_CASE(the_version_says_how_it_was_built) {
  const Json facts = json("version --json");
  const Outcome shown = (*this)("version");
  BOOST_TEST(shown.out.starts_with("longhand " + facts["version"].string()));
  BOOST_TEST(contains(shown.out, facts["commit"].string()));
}

BOOST_AUTO_TEST_SUITE_END()
