// Tests the commands that find runs and compare them.
#include <sys/fsuid.h>
#include <sys/stat.h>

#include <filesystem>

#include "apps/run/run_summary.h"
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
    BOOST_TEST(row["metric"] == "ood/sequences");
    BOOST_TEST(row["value"].is_number());
  }
  BOOST_TEST(json("runs runs/wide --json")["rows"].size() == 1u);
  const std::string table = (*this)("runs", "COLUMNS=80").out;
  BOOST_TEST(contains(table, "1x8"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) BOOST_TEST(line.size() <= 80u, line);
  // A run that cannot be read has a row of its own and does not affect the others.
  std::filesystem::create_directory(folder / "runs/bad");
  write_atomically(folder / "runs/bad/config.ini", "[task]\nname = nosuch\n");
  const auto listed = (*this)("runs");
  BOOST_TEST(listed.status == 0);
  BOOST_TEST(listed.out.find("unreadable") != std::string::npos);
  BOOST_TEST(listed.err.find("nosuch") != std::string::npos);
  refuses(1, "runs nowhere", "nowhere");
}

BOOST_AUTO_TEST_CASE(runs_and_columns_are_ranked_by_a_chosen_score) {
  // Adds scores to the two runs: 0.25 to narrow, and 0.75 to wide. Ordered by paths, narrow is
  // first.
  for (const auto& [name, value] : {std::pair("narrow", "0.25"), std::pair("wide", "0.75")}) {
    std::ofstream(folder / "runs" / name / "metrics.jsonl", std::ios::app)
        << R"({"step": 4, "train/tokens": )" << value << R"(, "ood/loss": )" << value << "}\n";
  }
  std::filesystem::create_directory(folder / "runs/another");
  write_atomically(folder / "runs/another/config.ini", "[task]\nname = chains\n");
  const auto order = [&](const std::string& by) {
    std::string names;
    const Json listed = json("runs --json --by " + by);
    for (const Json& row : listed["rows"]) {
      names += row["run"].string() + " ";
    }
    return names;
  };
  BOOST_TEST(order("train/tokens") == "runs/wide runs/narrow runs/another ");
  BOOST_TEST(order("ood/loss") == "runs/narrow runs/wide runs/another ");
  const Json ranked = json("runs --json --by train/tokens");
  BOOST_TEST(ranked["rows"][0]["value"].number() == 0.75);
  BOOST_TEST(ranked["rows"][0]["metric"] == "train/tokens");
  BOOST_TEST(ranked["rows"][2]["value"].is_null());
  refuses(1, "runs --by ood/tokenz", "--by: no run has the score \"ood/tokenz\"");

  const std::string both = "compare runs/narrow runs/wide ";
  const auto header = [&](const std::string& words) {
    const std::string out = (*this)(both + words).out;
    return out.substr(0, out.find('\n'));
  };
  const auto wide_first = [&](const std::string& words) {
    const std::string line = header(words);
    return line.find("wide") < line.find("narrow");
  };
  BOOST_TEST(wide_first("--by train/tokens"));
  BOOST_TEST(!wide_first("--by ood/loss"));
  BOOST_TEST(!wide_first(""));
  BOOST_TEST(json(both + "--json")["score"] == "ood/sequences");
  BOOST_TEST(json(both + "--json --by train/tokens")["score"] == "train/tokens");
  refuses(1, both + "--by validation", "--by: none of these runs has the score \"validation\"");
}

BOOST_AUTO_TEST_CASE(one_unreadable_folder_or_loop_of_links_hides_no_run) {
  namespace fs = std::filesystem;
  const fs::path runs = folder / "runs";
  fs::create_symlink("loop", runs / "loop");
  fs::create_directories(runs / "looped");
  fs::create_symlink("config.ini", runs / "looped/config.ini");
  fs::create_directories(runs / "piped");
  BOOST_REQUIRE(::mkfifo((runs / "piped/config.ini").c_str(), 0600) == 0);
  BOOST_REQUIRE(::mkfifo((runs / "wide/lock").c_str(), 0600) == 0);
  fs::create_symlink("nowhere", runs / "broken");
  fs::create_directory_symlink(runs, runs / "up");
  fs::create_directories(runs / "a/b/c/d");
  fs::create_directories(folder / "elsewhere");
  fs::rename(runs / "narrow", folder / "elsewhere/narrow");
  fs::create_directory_symlink(folder / "elsewhere/narrow", runs / "narrow");
  const auto listed = (*this)("runs --json", "timeout 60");
  BOOST_TEST(listed.status == 0, listed.err);
  const Json rows = Json::parse(listed.out).value()["rows"];
  BOOST_REQUIRE(rows.size() == 4u);  // links to runs are followed
  for (const Json& row : rows) {
    const std::string& name = row["run"].string();
    const bool sound = name == "runs/narrow";
    BOOST_TEST(row["state"] == (sound ? "finished" : "unreadable"), name);
  }
  for (const char* part :
       {"runs/loop: cannot be read: Too many levels of symbolic links",
        "runs/looped/config.ini: cannot be read: Too many levels of symbolic links",
        "runs/piped/config.ini: expected a file, got a pipe",
        "runs/wide/lock: expected a file, got a pipe"}) {
    BOOST_TEST(contains(listed.err, part));
  }
  BOOST_TEST(listed.err.find("filesystem") == listed.err.npos);
  BOOST_TEST(std::count(listed.err.begin(), listed.err.end(), '\n') == 4);
  refuses(1, "describe runs/loop", "runs/loop");
  refuses(1, "describe runs/looped", "config.ini: cannot be read: Too many levels");

  // Like the command `serve`, this call does not follow links while it searches for runs.
  const app::FoundRuns found = app::runs_below(runs, Links::refuse);
  BOOST_TEST(found.runs.size() == 3u);
  BOOST_TEST(std::ranges::count_if(found.skipped, [](const std::string& message) {
               return message.ends_with("is a link, which is not followed");
             }) == 2);  // the links `up` and `narrow` are skipped
}

BOOST_AUTO_TEST_CASE(a_folder_without_permission_is_named) {
  namespace fs = std::filesystem;
  const fs::path runs = folder / "runs";
  fs::permissions(folder.path(), fs::perms(0755));
  for (const auto& [name, mode] : {std::pair("none", 0), {"listed", 0444}, {"searched", 0111}}) {
    fs::create_directories(runs / name / "inner");
    fs::permissions(runs / name, fs::perms(mode));
  }
  // Root may read every folder. So this thread takes the rights of another user for a while.
  ::setfsuid(61234);
  const app::FoundRuns found = app::runs_below(runs);
  ::setfsuid(::geteuid());
  for (const char* name : {"none", "listed", "searched"})
    fs::permissions(runs / name, fs::perms(0755));
  BOOST_TEST(found.runs.size() == 2u);
  BOOST_REQUIRE(found.skipped.size() == 3u);
  for (const std::string& message : found.skipped) {
    BOOST_TEST(message.ends_with(": Permission denied"), message);
  }
}

BOOST_AUTO_TEST_CASE(compare_shows_settings_that_differ_and_scores) {
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
  // `compare` must not report values that are equal but written in another way, such as 1e-05.
  const auto trained = (*this)(
      "train --task reversal --task.length 1-3 --layers 1 --heads softmax:2x4 --steps 4 --batch 2 "
      "--evaluate-every 2 --evaluate-samples 2 --quiet --width 8 --norm-epsilon 1e-05 --rate 0.001 "
      "--decay 0.1 --out runs/same");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  std::vector<std::string> settings;
  const Json same = json("compare runs/narrow runs/same --json");
  for (const Json& row : same["rows"].elements()) {
    const std::string& what = row["what"].string();
    if (what.find('.') != std::string::npos) settings.push_back(what);
  }
  const std::vector<std::string> expected{"training.decay", "compute.threads"};
  BOOST_TEST(settings == expected, boost::test_tools::per_element());
  // A shell completes the name of a folder with a slash. Narrow tables divide settings, not
  // numbers.
  const std::string narrow = (*this)("compare runs/narrow/ runs/wide/", "COLUMNS=40").out;
  BOOST_TEST(contains(narrow.substr(0, narrow.find('\n')), " narrow "));
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) BOOST_TEST(line.size() <= 40u, line);
  refuses(2, "compare runs/wide", "two runs");
  refuses(1, "compare runs/wide runs/none", "runs/none");
}

BOOST_AUTO_TEST_SUITE_END()
