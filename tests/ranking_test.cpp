// Tests the scores by which runs are ranked.
#include "apps/run/ranking.h"

#include <fstream>

#include "tests/check.h"

#include "apps/run/evaluation.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(ranking_test)

using namespace longhand;
using namespace longhand::app;

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += word + " ";
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_training_distribution_is_the_last_choice_of_every_task) {
  for (const tasks::TaskKind& kind : tasks::all_tasks()) {
    if (kind.files) continue;
    const Config config(kind.name);
    const std::vector<std::string> names = config.ranking_distributions();
    BOOST_TEST(names.size() == config.distributions().size(), kind.name);
    BOOST_TEST(names.back() == "train", kind.name);
  }
  BOOST_TEST(joined(ranking_scores(Config("reversal"))) == "ood/sequences train/sequences ");
  BOOST_TEST(joined(ranking_scores(Config("sorting"))) ==
             "length-50/sequences length-100/sequences train/sequences ");
  BOOST_TEST(joined(ranking_scores(Config("text"))) ==
             "validation/bits_per_byte train/bits_per_byte ");
  // Scores on the test set `drift` are not used to select the best checkpoint, so `drift` is listed
  // after the other test sets.
  BOOST_TEST(joined(Config("flip-flop").ranking_distributions()) == "sparse 2x 4x drift train ");
  BOOST_TEST(joined(ranking_scores(Config("reversal"), "train")) == "train/sequences ");
  BOOST_TEST(joined(ranking_scores(Config("reversal"), "ood/tokens")) == "ood/tokens ");
}

BOOST_AUTO_TEST_CASE(samples_of_files_that_a_run_trains_on_are_the_last_choice) {
  const TemporaryFolder folder;
  for (const char* name : {"train", "id", "test", "ood-far", "ood"}) {
    std::ofstream(folder / (std::string(name) + ".jsonl")) << R"({"prompt": "a=", "answer": "b"})"
                                                           << "\n";
  }
  Config config("files");
  config.set("task.files", folder.path().string());
  config.read_files();
  BOOST_TEST(joined(config.ranking_distributions()) == "ood ood-far test id train ");
  config.set("training.train_on", "ood");
  BOOST_TEST(joined(config.ranking_distributions()) == "ood-far test id train ood ");
  // If the task has a single file, some of its records are held out for validation.
  Config single("files");
  for (int i = 0; i < 20; ++i) {
    std::ofstream(folder / "train.jsonl", std::ios::app) << R"({"prompt": "a=", "answer": "b"})"
                                                         << "\n";
  }
  single.set("task.files", (folder / "train.jsonl").string());
  single.read_files();
  BOOST_TEST(joined(single.ranking_distributions()) == "validation train ");
}

BOOST_AUTO_TEST_CASE(the_names_of_metrics_are_known_without_a_model) {
  const EvaluationOptions options{.samples = 20};
  BOOST_TEST(joined(metric_names(*Config("sorting").task("length-50"), options)) ==
             "sequences tokens edit-distance ");
  BOOST_TEST(joined(metric_names(*Config("cycle-tracing").task(), options)) ==
             "transitions nodes sequences ");
}

BOOST_AUTO_TEST_SUITE_END()
