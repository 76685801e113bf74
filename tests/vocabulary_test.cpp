#include "tasks/vocabulary.h"

#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(vocabulary_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

using Tokens = std::vector<std::int32_t>;

}  // namespace

BOOST_AUTO_TEST_CASE(text_is_converted_to_tokens_and_back) {
  const WordVocabulary vocabulary = WordVocabulary::of_characters("wri01");
  BOOST_TEST(vocabulary.size() == 5);
  BOOST_TEST(vocabulary.encode("w1r1") == (Tokens{0, 4, 1, 4}));
  BOOST_TEST(vocabulary.decode(Tokens{0, 4, 1, 4}) == "w1r1");
  BOOST_TEST(vocabulary.encode("").empty());
}

BOOST_AUTO_TEST_CASE(the_longest_token_that_fits_is_taken) {
  const WordVocabulary vocabulary({"3", "34", "345", "4", "5"});
  BOOST_TEST(vocabulary.encode("3453434553") == (Tokens{2, 1, 2, 4, 0}));
}

BOOST_AUTO_TEST_CASE(numbers_are_their_own_tokens) {
  const WordVocabulary vocabulary = WordVocabulary::of_numbers(12);
  BOOST_TEST(vocabulary.size() == 12);
  BOOST_TEST(vocabulary.encode("0 11 7") == (Tokens{0, 11, 7}));
  BOOST_TEST(vocabulary.decode(Tokens{0, 11, 7}) == "0 11 7");
  BOOST_CHECK_THROW(vocabulary.encode("12"), Error);
  BOOST_CHECK_THROW(vocabulary.encode("07"), Error);
}

BOOST_AUTO_TEST_CASE(words_are_separated_by_separators) {
  const WordVocabulary vocabulary({"1", "12", "⊥"}, " ");
  BOOST_TEST(vocabulary.encode("12 1 ⊥ 1") == (Tokens{1, 0, 2, 0}));
  BOOST_TEST(vocabulary.decode(Tokens{1, 0, 2, 0}) == "12 1 ⊥ 1");
  BOOST_TEST(vocabulary.encode("  12   1 ") == (Tokens{1, 0}));
  BOOST_TEST(vocabulary.encode(" ").empty());
  BOOST_CHECK_EXCEPTION(vocabulary.encode("1 121 1"), Error, [](const Error& error) {
    return error.what() ==
           std::string("text: no token of the vocabulary matches at character 3: \"121 1\"");
  });
  BOOST_CHECK_THROW(WordVocabulary({"a", "b c"}, " "), Error);
}

BOOST_AUTO_TEST_CASE(tokens_are_found_by_their_text) {
  const WordVocabulary vocabulary({"a", "größe"});
  BOOST_TEST(vocabulary.at("größe") == 1);
  BOOST_TEST(!vocabulary.find("b").has_value());
  BOOST_TEST(vocabulary.text(0) == "a");
}

BOOST_AUTO_TEST_CASE(text_without_matching_tokens_is_refused) {
  const WordVocabulary vocabulary({"ab", "c"});
  BOOST_CHECK_EXCEPTION(vocabulary.encode("abca"), Error, [](const Error& error) {
    return error.what() ==
           std::string("text: no token of the vocabulary matches at character 4: \"a\"");
  });
  BOOST_CHECK_THROW(vocabulary.text(2), Error);
  BOOST_CHECK_THROW(vocabulary.text(-1), Error);
  BOOST_CHECK_THROW(vocabulary.at("x"), Error);
  BOOST_CHECK_THROW(WordVocabulary({"a", "a"}), Error);
  BOOST_CHECK_THROW(WordVocabulary({"a", ""}), Error);
}

BOOST_AUTO_TEST_SUITE_END()
