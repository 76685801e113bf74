#include "nn/text/added_tokens.h"

#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(added_tokens_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

std::string found(const AddedTokenFinder& finder, std::string_view text) {
  std::string all;
  std::size_t at = 0;
  while (const auto match = finder.find(text, at)) {
    at = match->end;
    all += std::to_string(match->id) + "@" + std::to_string(match->begin) + "-" +
           std::to_string(match->end) + " ";
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_leftmost_match_wins_and_then_the_longest) {
  const AddedTokenFinder finder({{1, "\n", false},
                                 {2, "\n\n", false},
                                 {3, "\n\n\n\n", false},
                                 {4, "<a>", true},
                                 {5, "<a", true},
                                 {6, "a>b", true}});
  BOOST_TEST(found(finder, "") == "");
  BOOST_TEST(found(finder, "x\ny") == "1@1-2 ");
  BOOST_TEST(found(finder, "\n\n\n") == "2@0-2 1@2-3 ");
  BOOST_TEST(found(finder, "\n\n\n\n\n") == "3@0-4 1@4-5 ");
  BOOST_TEST(found(finder, "<a>b") == "4@0-3 ");
  BOOST_TEST(found(finder, "<ab a>b<") == "5@0-2 6@4-7 ");
}

BOOST_AUTO_TEST_CASE(tokens_with_a_common_prefix_are_told_apart) {
  const AddedTokenFinder finder({{1, "<x>", true}, {2, "<xy>", true}});
  BOOST_TEST(found(finder, "<<x<xy><x>") == "2@3-7 1@7-10 ");
  BOOST_TEST(found(finder, "<") == "");
}

BOOST_AUTO_TEST_CASE(empty_long_and_repeated_contents_are_refused) {
  BOOST_CHECK_THROW(AddedTokenFinder({{1, "", true}}), Error);
  BOOST_CHECK_THROW(AddedTokenFinder({{1, std::string(257, 'a'), true}}), Error);
  BOOST_CHECK_THROW(AddedTokenFinder({{1, "a", true}, {2, "a", true}}), Error);
}

BOOST_AUTO_TEST_SUITE_END()
