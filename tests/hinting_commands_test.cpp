#include <sstream>

#include "tests/program.h"
#include "tests/refusal.h"

namespace hinting_commands_test {

/// Tests the commands train, eval --sweep and inspect with a sorting model that is also trained on
/// a hint (each number's successor). The tests execute the program as a user does.

using namespace longhand;

struct Sorting : Program {
  Sorting() {
    const Json result = json(
        "train --task sorting --task.hint successor --task.long 8 --width 16 --layers 2 "
        "--heads softmax:2 --positions none --order sequential --batch_tokens 200 --steps 4 "
        "--evaluate_samples 2 --threads 1 --quiet --json --out a");
    BOOST_REQUIRE(result["finished"] == true);
  }
};

}  // namespace hinting_commands_test

BOOST_FIXTURE_TEST_SUITE(hinting_commands_test, Sorting)

BOOST_AUTO_TEST_CASE(output_heads_take_turns_and_batches_respect_the_token_limit) {
  std::string heads;
  for (const Json& line : metrics("a")) {
    if (!line.contains("loss")) continue;
    heads += line["head"].string() + ' ';
    BOOST_TEST(line["tokens"].integer() <= 200);
    BOOST_TEST(line["tokens"].integer() > 180);
  }
  BOOST_TEST(heads == "sort successor sort successor ");
  BOOST_TEST(contains(contents(folder / "a/report.html"), "successor"));
}

BOOST_AUTO_TEST_CASE(a_sweep_scores_every_combination) {
  const Json report = json(
      "eval a --reading decoded --samples 5 --sweep length=4,6 --sweep repeat=2..3 "
      "--figure f.html --json");
  BOOST_TEST(report["rows"].size() == 12u);  // three metrics for each of four option combinations
  BOOST_TEST(report["rows"][3]["on"] == "length=4 repeat=3");
  BOOST_TEST(report["rows"][3]["metric"] == "sequences");
  BOOST_TEST(report["rows"][3]["count"] == 5);
  BOOST_TEST(contains(contents(folder / "f.html"), "repeat 3"));
  // Output head 1 of the model does not predict the sorted numbers, but the hint: the successor of
  // a number.
  const Json hint = json("eval a --samples 5 --head 1 --sweep length=6 --json");
  BOOST_TEST(hint["rows"][1]["count"] == 5);  // each of five samples has one number as its answer

  refuses(2, "eval a --sweep length=1", "length");
  refuses(2, "eval a --sweep length", "OPTION=VALUES");
  refuses(2, "eval a --sweep width=3", "width");
  refuses(2, "eval a --sweep length=4 --on train", "--sweep");
  refuses(2, "eval a --figure f.html", "--sweep");
  refuses(2, "eval a --head 2", "--head");
  refuses(1, "eval a --samples 1 --sweep length=4 --figure absent/f.html", "absent/f.html");
}

BOOST_AUTO_TEST_CASE(a_token_is_projected_on_both_bases) {
  json("inspect a --prompt '5 17 43 ⊥ 5' --position 2 --position 3 --json");
  const std::string page = contents(folder / "a/inspect.html");
  BOOST_TEST(contains(page, "Residual stream of 43 at position 2"));
  BOOST_TEST(contains(page, "Residual stream of ⊥ at position 3"));
  BOOST_TEST(contains(page, "Near-orthogonality"));
  refuses(2, "inspect a --prompt '5 17 ⊥' --position 3", "--position");
  refuses(2, "inspect a --prompt 'five'", "--prompt");
  refuses(2, "inspect a --prompt ''", "--prompt");
}

BOOST_AUTO_TEST_SUITE_END()
