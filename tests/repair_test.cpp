// Tests the command `longhand repair`. The tests execute the program as a user does.
#include <cmath>
#include <cstring>

#include "core/safetensors.h"
#include "tests/program.h"

namespace repair_test {

using namespace longhand;
namespace fs = std::filesystem;

/// A run in which 4 query heads of width 4 share 2 key heads. Rows 0 to 15 of the projection
/// compute queries, and rows 16 to 23 compute keys.
struct Fixture {
  Program longhand;

  Fixture() {
    longhand.json(
        "train --task reversal --task.length 1-4 --heads softmax:4/2 --width 16 --layers 2 "
        "--steps 3 --evaluate_samples 2 --quiet --json --out first");
  }
  Json repair(const std::string& words) const {
    return longhand.json("repair first --samples 8 --evaluate_samples 2 --quiet --json " + words);
  }
};

bool same_bytes(const SafetensorsFile& a, const SafetensorsFile& b, const std::string& name) {
  return std::ranges::equal(a.at(name).bytes, b.at(name).bytes);
}

}  // namespace repair_test

BOOST_FIXTURE_TEST_SUITE(repair_test, Fixture)

BOOST_AUTO_TEST_CASE(only_the_selected_columns_of_queries_and_keys_are_trained) {
  for (const auto& [flags, columns] :
       {std::pair{"", std::vector<std::size_t>{3}},
        std::pair{"--columns 0,2..3", std::vector<std::size_t>{0, 2, 3}}}) {
    const Json made = repair(text(
        "--method columns --steps 4 --rate 1e-2 --decay 0.5 --clip 1 --checkpoint_every 2 --keep 9 "
        "--train_on ood --out second ",
        flags));
    BOOST_TEST(made["method"] == "columns");
    BOOST_TEST(made["rows"].size() > 0u);
    const auto first = longhand.model("first", 3), begun = longhand.model("second", 0),
               ended = longhand.model("second", 4);
    for (const SafetensorsEntry& entry : first.entries()) {
      BOOST_TEST(same_bytes(first, begun, entry.name));
      const bool learns = entry.name.ends_with("projection.weight");
      BOOST_TEST(same_bytes(first, ended, entry.name) == !learns, entry.name);
      if (!learns) continue;
      for (std::size_t row = 0; row < 32; ++row) {
        const auto row_of = [&](const SafetensorsFile& file) {
          return file.at(entry.name).bytes.subspan(row * 16 * sizeof(float), 16 * sizeof(float));
        };
        const bool chosen = row < 24 && std::ranges::count(columns, row % 4) == 1;
        BOOST_TEST(std::ranges::equal(row_of(first), row_of(ended)) == !chosen,
                   entry.name << " " << row);
      }
    }
    // Resuming the run from step 2 gives the same bits.
    const std::string whole = longhand.checkpoint("second", 4);
    longhand.json("train --resume second --from-step 2 --quiet --json");
    BOOST_TEST((longhand.checkpoint("second", 4) == whole));
    longhand.json("eval second --samples 2 --json");
    longhand.json("generate second --prompt ab= --tokens 2 --json");
    fs::remove_all(longhand.path("second"));
  }
}

BOOST_AUTO_TEST_CASE(a_repair_prints_every_distribution_before_and_after) {
  const Json made = repair("--method columns --steps 2 --rate 0 --out second");
  const Json scored = longhand.json("eval first --samples 8 --json");
  BOOST_REQUIRE(made["rows"].size() == scored["rows"].size());
  for (std::size_t i = 0; i < made["rows"].size(); ++i) {
    const Json &ours = made["rows"][i], &theirs = scored["rows"][i];
    BOOST_TEST((ours["on"] == theirs["on"] && ours["metric"] == theirs["metric"]));
    // The repair had the learning rate 0, so the scores before and after it are equal.
    BOOST_TEST((ours["before"] == theirs["value"] && ours["after"] == theirs["value"]));
    BOOST_TEST((ours["before_low"] == theirs["low"] && ours["after_high"] == theirs["high"]));
  }
  const Json one = repair("--method columns --steps 1 --on ood --reading decoded --out third");
  for (const Json& row : one["rows"]) BOOST_TEST(row["on"] == "ood");
  BOOST_TEST(one["reading"] == "decoded");
}

BOOST_AUTO_TEST_CASE(turning_rotary_positions_off_keeps_the_weights) {
  repair("--method rope-off --out second");
  const auto first = longhand.model("first", 3), second = longhand.model("second", 0);
  for (const SafetensorsEntry& entry : first.entries()) {
    BOOST_TEST(same_bytes(first, second, entry.name));
  }
  BOOST_TEST(contents(longhand.path("second/config.ini")).find("positions = none\n") !=
             std::string::npos);
  const auto said = [&](const std::string& run) {
    return longhand.json("generate " + run +
                         " --prompt abcd= --tokens 1 --json")["log_probabilities"];
  };
  BOOST_TEST(said("first").size() == 1u);
  BOOST_TEST(!(said("first") == said("second")));
  longhand.refuses(1, "repair second --method rope-off --out third",
                   "expected a run with --positions rotary, got --positions none");
  longhand.refuses(2, "repair first --method rope-off --steps 3 --out third", "--steps");
}

BOOST_AUTO_TEST_CASE(a_bias_is_trained_while_the_model_is_frozen) {
  for (const char* const method : {"bias-matrix", "bias-heads"}) {
    const std::string run = text("by-", method);
    const Json begun =
        repair(text("--method ", method, " --steps 0 --out ", run, "-begun --train_on train"));
    for (const Json& row : begun["rows"]) {
      BOOST_TEST(std::abs(row["before"].number() - row["after"].number()) < 1e-9);
    }
    repair(text("--method ", method,
                " --steps 4 --rate 1e-2 --decay 0.1 --checkpoint_every 2 --keep 9 --out ", run));
    const auto first = longhand.model("first", 3), ended = longhand.model(run, 4);
    for (const SafetensorsEntry& entry : first.entries()) {
      BOOST_TEST(same_bytes(first, ended, entry.name), entry.name);
    }
    const auto fresh = longhand.model(run, 0);
    int added = 0;
    for (const SafetensorsEntry& entry : ended.entries()) {
      if (entry.name.find("score_bias") == std::string::npos) continue;
      BOOST_TEST(!same_bytes(fresh, ended, entry.name), entry.name);
      ++added;
    }
    BOOST_TEST(added == (method == std::string("bias-matrix") ? 2 : 4));
    const std::string whole = longhand.checkpoint(run, 4);
    longhand.json("train --resume " + run + " --from-step 2 --threads 1 --quiet --json");
    BOOST_TEST((longhand.checkpoint(run, 4) == whole));
    const auto scores = [&](const char* reading) {
      return longhand.json("eval " + run + " --samples 4 --reading " + reading + " --json");
    };
    BOOST_TEST(scores("forced")["rows"].size() > 0u);
    BOOST_TEST(scores("decoded")["rows"].size() > 0u);
    longhand.json("generate " + run + " --prompt abc= --tokens 3 --json");
    BOOST_TEST(longhand("inspect " + run + " --samples 2").status == 0);
    longhand.refuses(1, "export " + run + " --out other", "expected");
    BOOST_TEST(!fs::exists(longhand.path("other")));
  }
}

BOOST_AUTO_TEST_CASE(the_repaired_run_has_the_best_settings_of_reinforced_heads) {
  const Json made = repair(
      "--method reinforce --top 1..3 --delta 0.5,2 --threshold 0,0.2 --search-samples 8 "
      "--search-on ood --out second");
  const Json& tried = made["tried"];
  BOOST_REQUIRE(tried.size() == 12u);
  for (std::size_t i = 1; i < tried.size(); ++i) {
    const Json &better = tried[i - 1], &worse = tried[i];
    const double gain = better["score"].number() - worse["score"].number();
    BOOST_TEST((gain > 0 || (gain == 0 && better["loss"].number() <= worse["loss"].number())));
  }
  const auto first = longhand.model("first", 3), second = longhand.model("second", 0);
  std::int64_t chosen = 0;
  for (const SafetensorsEntry& entry : second.entries()) {
    if (!entry.name.ends_with("reinforcement")) {
      BOOST_TEST(same_bytes(first, second, entry.name));
      continue;
    }
    std::vector<float> amounts(entry.bytes.size() / sizeof(float));
    std::memcpy(amounts.data(), entry.bytes.data(), entry.bytes.size());
    for (const float amount : amounts) {
      BOOST_TEST((amount == 0 || amount == tried[0]["delta"].number()));
      chosen += amount != 0;
    }
  }
  BOOST_TEST(chosen == tried[0]["heads"].integer());
}

BOOST_AUTO_TEST_CASE(a_run_with_reinforced_heads_is_ranked_and_scored_like_others) {
  const Json made =
      repair("--method reinforce --top 2 --delta 2 --threshold 0 --search-samples 8 --out second");
  BOOST_TEST(longhand.json("describe second --json")["state"] == "repaired");
  // The repaired run has scores, so `compare` ranks it beside the original run. Settings that are
  // written differently but have the same effect are not shown.
  const Json compared = longhand.json("compare first second --json");
  BOOST_TEST(compared["score"] == "ood/sequences");
  std::string settings;
  for (const Json& row : compared["rows"]) {
    const std::string& what = row["what"].string();
    if (what.find('/') == what.npos && what != "loss") settings += what + " ";
    if (what.find('/') != what.npos) BOOST_TEST(row["second"].is_number(), what);
  }
  BOOST_TEST(settings == "model.reinforce training.steps ");
  // Scoring the repaired run with `eval` gives the values that `repair` printed.
  const Json scored = longhand.json("eval second --samples 8 --json");
  for (std::size_t i = 0; i < scored["rows"].size(); ++i) {
    BOOST_TEST((scored["rows"][i]["value"] == made["rows"][i]["after"]));
  }
  longhand.refuses(1, "generate second --prompt abc= --tokens 2", "reinforced");
  longhand.refuses(1, "train --from second --steps 1 --out other", "reinforce");
}

BOOST_AUTO_TEST_CASE(a_search_prints_the_result_before_the_settings_that_it_tried) {
  const auto printed = longhand(
      "repair first --method reinforce --top 1 --delta 1 --threshold 0 --search-samples 8 "
      "--samples 8 --out printed");
  BOOST_TEST(printed.status == 0);
  BOOST_TEST(printed.out.starts_with("distribution"));
  BOOST_TEST(contains(printed.out, "\n\nsettings tried, the best first\nheads"));
}

BOOST_AUTO_TEST_CASE(a_reinforcement_of_zero_changes_no_score) {
  const Json none = repair(
      "--method reinforce --top 2 --delta 0 --threshold 0 --search-samples 8 --sweep length=2,9 "
      "--figure figure.html --out third");
  BOOST_TEST(none["rows"].size() > 0u);
  for (const Json& row : none["rows"]) {
    BOOST_TEST((row["on"] == "length=2" || row["on"] == "length=9"));
    BOOST_TEST((row["before"] == row["after"]));
  }
  BOOST_TEST(contents(longhand.path("figure.html")).find("after") != std::string::npos);
  const std::string again = "repair first --method reinforce --out other ";
  longhand.refuses(2, again + "--top 9", "--top: expected an integer from 1 to 8");
  longhand.refuses(2, again + "--delta big", "--delta: expected a number");
  longhand.refuses(2, again + "--steps 5", "reinforce does not train");
  longhand.refuses(2, again + "--rank-on far", "--rank-on");
  longhand.refuses(2, again + "--figure f.html", "--sweep");
  BOOST_TEST(!fs::exists(longhand.path("other")));
}

BOOST_AUTO_TEST_CASE(an_invalid_repair_is_refused_in_one_line_and_leaves_no_files) {
  const std::string columns = "repair first --method columns --out other ";
  longhand.refuses(2, "repair first --out other", "--method");
  longhand.refuses(2, "repair first --method all --out other",
                   "expected columns, rope-off, bias-matrix, bias-heads or reinforce, got \"all\"");
  longhand.refuses(2, columns + "--columns 4", "--columns: expected numbers from 0 to 3");
  longhand.refuses(2, columns + "--columns 2..1", "an ascending range");
  longhand.refuses(2, columns + "--columns first", "such as 0,60..63, got \"first\"");
  longhand.refuses(2, columns + "--train blocks.0", "training.train = auto");
  longhand.refuses(2, columns + "--weights bf16", "training.weights = f32, got bf16");
  longhand.refuses(2, columns + "--train_on far", "--train-on");
  longhand.refuses(2, columns + "--on far", "--on");
  longhand.refuses(2, columns + "--top 3", "--top");
  longhand.refuses(2, columns + "--reading loud", "--reading");
  longhand.refuses(2, columns + "--task nothing", "--task");
  longhand.refuses(1, columns + "--task addition", "vocabulary");
  longhand.refuses(1, "repair nowhere --method columns --out other", "expected a run folder");
  longhand.refuses(1, columns + "--from-step 7", "no checkpoint of step 7");
  longhand.refuses(1, "repair first --method columns --out first", "already holds a run");
  longhand.refuses(1, "repair first --method bias-matrix --score_bias_longest 20 --out other",
                   "at most 20");
  longhand.json(
      "train --task reversal --task.length 1-4 --heads fal:2 --width 8 --layers 1 --steps 1 "
      "--evaluate_samples 2 --quiet --json --out fal");
  longhand.refuses(1, "repair fal --method bias-heads --out other", "softmax heads, got fal:2x4");
  BOOST_TEST(!fs::exists(longhand.path("other/config.ini")));
}

BOOST_AUTO_TEST_SUITE_END()
