// Tests the suggestion of a known word that is similar to a mistyped word.
#include "core/nearest.h"

#include <vector>

#include "tests/check.h"

BOOST_AUTO_TEST_SUITE(nearest_test)

using longhand::did_you_mean;

const std::vector<std::string> commands{"train", "eval", "generate", "op", "repro"};

BOOST_AUTO_TEST_CASE(a_misspelled_name_gets_a_suggestion_and_an_unrelated_word_does_not) {
  for (const char* const slip : {"trian", "tran", "traain", "traib"}) {
    BOOST_TEST(did_you_mean(slip, commands) == "; did you mean train?", slip);
  }
  BOOST_TEST(did_you_mean("genrate", commands) == "; did you mean generate?");
  BOOST_TEST(did_you_mean("evla", commands) == "; did you mean eval?");
  BOOST_TEST(did_you_mean("ops", commands) == "; did you mean op?");
  for (const char* const other : {"", "x", "compare", "sorting", "trxxx"}) {
    BOOST_TEST(did_you_mean(other, commands) == "", other);
    BOOST_TEST(did_you_mean(other, commands, "; see help") == "; see help", other);
  }
  BOOST_TEST(did_you_mean(std::string(100'000, 't'), commands) == "");
  BOOST_TEST(did_you_mean("train", {}) == "");
}

BOOST_AUTO_TEST_SUITE_END()
