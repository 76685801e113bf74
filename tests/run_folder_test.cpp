#include "apps/run/run_folder.h"

#include <ctime>
#include <fstream>
#include "tests/check.h"

#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace run_folder_test {

using namespace longhand;
using namespace longhand::app;
namespace fs = std::filesystem;

struct Fixture {
  TemporaryFolder folder;
  fs::path path = folder / "run";
  Config config{"flip-flop"};

  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> all;
    for (const Json& line : RunFolder(path).metrics()) all.push_back(line["step"].integer());
    return all;
  }
};

using StepNumbers = std::vector<std::int64_t>;

}  // namespace run_folder_test

BOOST_FIXTURE_TEST_SUITE(run_folder_test, Fixture)

BOOST_AUTO_TEST_CASE(nothing_is_written_before_the_logs_are_opened) {
  RunFolder run = RunFolder::create(path, config);
  BOOST_TEST(!fs::exists(path));
  run.open();
  run.open_logs(0);
  BOOST_TEST(RunFolder(path).config().ini() == config.ini());
}

BOOST_AUTO_TEST_CASE(lines_after_the_checkpoint_are_dropped_and_a_cut_line_is_skipped) {
  {
    RunFolder run = RunFolder::create(path, config);
    run.open();
    run.open_logs(0);
    for (int step = 1; step <= 5; ++step) run.log({{"step", step}, {"loss", 1.0 / step}});
  }
  std::ofstream(path / "metrics.jsonl", std::ios::app) << "{\"step\":6,\"lo";
  BOOST_TEST(steps() == (StepNumbers{1, 2, 3, 4, 5}), boost::test_tools::per_element());
  RunFolder run(path);
  run.open();
  run.open_logs(3);
  run.log({{"step", 4}, {"loss", 0.5}});
  BOOST_TEST(steps() == (StepNumbers{1, 2, 3, 4}), boost::test_tools::per_element());
  BOOST_TEST(run.metrics().back()["loss"] == 0.5);
  BOOST_TEST(run.metrics()[1]["loss"] == 0.5);  // the original line of step 2 was kept
}

BOOST_AUTO_TEST_CASE(an_invalid_metrics_file_is_refused_at_once) {
  RunFolder::create(path, config).open();
  const auto with = [&](const std::string& line, int count) {
    std::ofstream file(path / "metrics.jsonl", std::ios::binary);
    for (int i = 0; i < count; ++i) file << line;
    file << "{\"step\":1}\n";
  };
  with("{]\n", 1000);
  BOOST_TEST(steps() == (StepNumbers{1}), boost::test_tools::per_element());
  const Metrics read = RunFolder(path).read_metrics();
  BOOST_TEST(read.lines == 1001);
  BOOST_TEST(read.damage.size() == 1000u);
  for (const char* line : {"\n", "{]\n"}) {
    with(line, 3'000'000);
    const std::clock_t start = std::clock();
    BOOST_TEST(contains(refusal([&] { RunFolder(path).metrics(); }),
                        "metrics.jsonl: more than 1000 lines are damaged"));
    BOOST_TEST(contains(refusal([&] {
                          RunFolder run(path);
                          run.open();
                          run.open_logs(1);
                        }),
                        "metrics.jsonl: more than 1000 lines are damaged"));
    // Reading the whole file would take a minute, so the reader must stop early.
    BOOST_TEST((std::clock() - start) / CLOCKS_PER_SEC < 5);
  }
}

BOOST_AUTO_TEST_CASE(a_folder_that_holds_a_run_is_refused_for_a_new_one) {
  {
    RunFolder run = RunFolder::create(path, config);
    BOOST_CHECK_THROW(run.open_logs(0), Error);  // the lock is not held yet
    run.open();
    run.open_logs(0);
  }
  BOOST_CHECK_THROW(RunFolder::create(path, config), Error);
  BOOST_CHECK_THROW(RunFolder{folder / "absent"}, Error);
  BOOST_CHECK_THROW(load_run(path), Error);  // there is no checkpoint yet
}

BOOST_AUTO_TEST_CASE(only_one_of_two_processes_can_write_or_create_a_run) {
  RunFolder first = RunFolder::create(path, config), second = RunFolder::create(path, config);
  {
    RunFolder holder = std::move(first);
    holder.open();
    BOOST_CHECK_THROW(RunFolder(path).open(), Error);
    BOOST_TEST(fs::exists(path / "lock"));
  }
  BOOST_TEST(!fs::exists(path / "lock"));
  BOOST_CHECK_THROW(second.open(), Error);  // meanwhile, `first` has created the run
  RunFolder(path).open();
}

BOOST_AUTO_TEST_CASE(an_evaluation_that_will_be_repeated_is_dropped) {
  {
    RunFolder run = RunFolder::create(path, config);
    run.open();
    run.open_logs(0);
    for (int step = 1; step <= 2; ++step) run.log({{"step", step}, {"loss", 1.0}});
    run.log({{"step", 2}, {"intervals", Json::object()}});
  }
  for (const bool evaluated : {true, false}) {
    RunFolder run(path);
    run.open();
    run.open_logs(2, evaluated);
    BOOST_TEST(run.metrics().size() == (evaluated ? 3u : 2u));
  }
}

BOOST_AUTO_TEST_CASE(invalid_settings_create_no_folder) {
  config.set("model.heads", "soft:4");
  BOOST_CHECK_THROW(RunFolder::create(path, config), Error);
  BOOST_TEST(!fs::exists(path));
}

BOOST_AUTO_TEST_SUITE_END()
