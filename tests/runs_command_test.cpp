// Finding runs, and putting them side by side.
#include <filesystem>

#include "core/atomic_file.h"
#include "tests/contents.h"
#include "tests/program.h"

namespace runs_command_test {

using namespace longhand;

struct TwoRuns : Program {
  TwoRuns() {
    for (const auto& [name, width] : {std::pair("narrow", "8"), std::pair("wide", "16")}) {
      const auto trained =
          (*this)(text("train --task reversal --task.length 1-3 --layers 1 --heads softmax:2 "
                       "--steps 4 --batch 2 "
                       "--evaluate-every 2 --evaluate-samples 2 --threads 1 --quiet --width ",
                       width, " --out runs/", name));
      BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
    }
  }
};

}  // namespace runs_command_test

BOOST_FIXTURE_TEST_SUITE(runs_command_test, TwoRuns)

BOOST_AUTO_TEST_CASE(runs_are_found_below_a_folder) {
  const Json found = json("runs --json");
  BOOST_REQUIRE(found["rows"].size() == 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& row = found["rows"][i];
    BOOST_TEST(row["run"] == (i == 0 ? "runs/narrow" : "runs/wide"));
    BOOST_TEST(row["task"] == "reversal");
    BOOST_TEST(row["width"].integer() == (i == 0 ? 8 : 16));
    BOOST_TEST(row["step"].integer() == 4);
    BOOST_TEST(row["state"] == "finished");
    BOOST_TEST(row["metric"] == "train/sequences");
    BOOST_TEST(row["value"].is_number());
  }
  BOOST_TEST(json("runs runs/wide --json")["rows"].size() == 1u);
  // One that cannot be read is a row of its own, and no more than that.
  std::filesystem::create_directory(folder / "runs/bad");
  write_atomically(folder / "runs/bad/config.ini", "[task]\nname = nosuch\n");
  const auto listed = (*this)("runs");
  BOOST_TEST(listed.status == 0);
  BOOST_TEST(listed.out.find("unreadable") != std::string::npos);
  BOOST_TEST(listed.err.find("nosuch") != std::string::npos);
  refuses(1, "runs nowhere", "nowhere");
}

BOOST_AUTO_TEST_CASE(runs_are_compared_by_what_differs_and_by_their_figures) {
  const Json compared = json("compare runs/narrow runs/wide --figure page.html --json");
  std::map<std::string, Json> rows;
  for (const Json& row : compared["rows"].elements()) rows.emplace(row["what"].string(), row);
  BOOST_TEST(rows.at("model.width")["runs/narrow"] == "8");
  BOOST_TEST(rows.at("model.width")["runs/wide"] == "16");
  BOOST_TEST(!rows.contains("model.layers"));
  BOOST_TEST(rows.at("loss")["runs/wide"].is_number());
  BOOST_TEST(rows.at("train/sequences")["runs/narrow"].is_number());
  const std::string page = contents(path("page.html"));
  for (const char* const part : {"model.width", ">narrow<", ">wide<", "<svg"}) {
    BOOST_TEST(page.find(part) != std::string::npos, part);
  }
  refuses(2, "compare runs/wide", "two runs");
  refuses(1, "compare runs/wide runs/none", "runs/none");
}

BOOST_AUTO_TEST_SUITE_END()
