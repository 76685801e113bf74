// Tests the command `data` with samples that the user provides.
#include <fstream>

#include "tests/program.h"

using namespace longhand;

BOOST_FIXTURE_TEST_SUITE(data_command_test, Program)

BOOST_AUTO_TEST_CASE(the_mask_of_a_sample_is_printed_as_pairs_and_in_words) {
  const Json mask = json("data --task reversal --text dh13=31hd --mask --json");
  BOOST_TEST(mask.dump() == R"({"pairs":[[5,3],[6,2],[7,1],[8,0]]})");
  const Json table = json("data --task value-assignment --text 'B1A0 AB=01' --mask --json");
  BOOST_TEST(table.dump() == R"({"pairs":[[8,2],[8,3],[8,5],[9,0],[9,1],[9,6]]})");
  const Outcome words = (*this)("data --task successor --text '8 9 ' --mask");
  BOOST_TEST(words.status == 0);
  BOOST_TEST(words.out == "8 9 \n2 \"9\": 0 \"8\", 1 \" \"\n");
  const Json tokens = json("data --task ffml --text w01r01 --json");
  // Two tokens are scored: the bit and the end of the answer.
  BOOST_TEST(tokens["asked"].size() == 2u);
}

BOOST_AUTO_TEST_CASE(printed_samples_can_be_read_again) {
  for (const char* task :
       {"reversal", "addition", "multiplication", "ffml", "value-assignment", "successor"}) {
    const Outcome drawn = (*this)(text("data --task ", task, " --count 3 --on ood"));
    BOOST_TEST(std::ranges::count(drawn.out, '\n') == 3, task);
    const std::string sample = drawn.out.substr(0, drawn.out.find('\n'));
    BOOST_TEST((*this)(text("data --task ", task, " --mask --text '", sample, "'")).status == 0,
               task << ' ' << sample);
  }
  std::ofstream(folder / "a.jsonl") << R"({"prompt": "ab=", "answer": "ba"})" << '\n'
                                    << R"({"prompt": "ab=", "answer": "ba\n"})" << '\n';
  BOOST_TEST((*this)("data check a.jsonl --task reversal").status == 0);
  std::ofstream(folder / "b.jsonl") << R"({"prompt": "ab=", "answer": "bb"})" << '\n';
  BOOST_TEST((*this)("data check b.jsonl --task reversal").status == 1);
}

BOOST_AUTO_TEST_CASE(text_that_is_not_a_sample_of_the_task_is_refused) {
  refuses(1, "data --task reversal --text 'a b=b a' --mask", "reversal: expected letters");
  refuses(1, "data --task addition --text 1+1=3 --mask", "addition: character 1 of the answer");
  refuses(1, "data --task flip-flop --text w1r1 --mask",
          "expected a task that can parse the text of a sample");
  refuses(1, "data --task reversal --text '' --mask", "expected a prompt and its answer");
  refuses(2, "data --task reversal --task.length 5-2", "length");
  refuses(2, "data check answers.jsonl --out x", "--out: cannot be used with `check`");
  refuses(2, "data split --out x", "split: expected a file, got none");
  refuses(2, "data --task reversal --mask", "--mask needs --text, --json or --out");
}

BOOST_AUTO_TEST_SUITE_END()
