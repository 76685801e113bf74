#include <fstream>

#include "tests/program.h"

namespace inspect_command_test {

/// Tests the command `inspect --reference`. The tests execute the program as a user does.

using namespace longhand;

struct Reversal : Program {
  Reversal() {
    train("--task reversal --task.length 1-5 --heads softmax:2,fal:1,chacal:1 --out a");
  }
  void train(const std::string& words) const {
    const Json result = json(
        "train --width 32 --layers 2 --batch 8 --steps 30 --evaluate_samples 2 --threads 1 --quiet "
        "--json " +
        words);
    BOOST_REQUIRE(result["finished"] == true);
  }
};

}  // namespace inspect_command_test

BOOST_FIXTURE_TEST_SUITE(inspect_command_test, Reversal)

BOOST_AUTO_TEST_CASE(attention_is_compared_with_the_reference) {
  const Json report = json("inspect a --reference --samples 40 --json");
  BOOST_TEST(report["samples"] == 40);
  BOOST_TEST(report["on"] == "train");
  BOOST_TEST(report["heads"].size() == 8u);
  BOOST_TEST(report["entropy"]["heads"] == 8);
  const double score = report["attention_score"]["mean"].number();
  BOOST_TEST(score > 0);
  BOOST_TEST(score < 1);
  BOOST_TEST(report["attention_score"]["low"].number() < score);
  const auto count = report["right"]["count"].integer() + report["wrong"]["count"].integer();
  BOOST_TEST(count == report["heads"][0]["rows"].integer());
  for (std::size_t i = 1; i < 8; ++i) {
    BOOST_TEST(report["heads"][i]["score"].number() <= report["heads"][i - 1]["score"].number());
  }
  BOOST_TEST(report["places"][0]["count"] == 40);
  BOOST_TEST(report["lengths"].size() == 5u);  // samples have 4, 6, 8, 10 or 12 tokens

  const std::string page = contents(folder / "a/attention.html");
  for (const char* heading :
       {"Rollout and reference", "Heads by their attention", "Errors", "Accuracy by length"}) {
    BOOST_TEST(page.find(heading) != std::string::npos);
  }

  const Outcome text = (*this)("inspect a --reference --samples 20 --out page.html --on ood");
  BOOST_TEST(text.status == 0);
  BOOST_TEST(text.err == "");
  for (const char* line : {"attention score", "Welch's test", "entropy of heads",
                           "errors by place in the answer", "by tokens of the sample"}) {
    BOOST_TEST(text.out.find(line) != std::string::npos);
  }
  BOOST_TEST(text.out.ends_with("pictures: page.html\n"));
}

BOOST_AUTO_TEST_CASE(a_task_without_a_reference_is_refused) {
  refuses(2, "inspect a --reference --prompt ab=", "--prompt");
  refuses(2, "inspect a --reference --on nowhere", "--on");
  std::ofstream(path("words.txt")) << std::string(4000, 'x');
  train("--task text --text words.txt --task.length 16 --heads softmax:2 --out b");
  refuses(1, "inspect b --reference --samples 3", "reference attention");
}

BOOST_AUTO_TEST_SUITE_END()
