#include "nn/text/word_scanner.h"

#include <string>
#include <vector>
#include "tests/check.h"

BOOST_AUTO_TEST_SUITE(word_scanner_test)

using namespace longhand::nn;

namespace {

/// The words of the text, separated by '|'.
template <class Scanner>
std::string cut(const Scanner&, std::string_view text) {
  std::string words;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    const char* const word_end = Scanner::word_end(p, end);
    BOOST_REQUIRE(word_end > p);
    BOOST_REQUIRE(word_end <= end);
    words.append(words.empty() ? "" : "|").append(p, word_end);
    p = word_end;
  }
  return words;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_gpt2_pattern_splits_text_as_published) {
  const auto words = [](std::string_view text) { return cut(Gpt2Scanner(), text); };
  BOOST_TEST(words("Hello  world 12x") == "Hello| | world| 12|x");
  BOOST_TEST(words("it's IT'S we'll 'x") == "it|'s| IT|'|S| we|'ll| '|x");
  BOOST_TEST(words("a\n\n b  ") == "a|\n\n| b|  ");
  BOOST_TEST(words("\tx...") == "\t|x|...");
  BOOST_TEST(words("\u00e9t\u00e9 \u4f60\u597d\u3002") == "\u00e9t\u00e9| \u4f60\u597d|\u3002");
  BOOST_TEST(words("x\u00a0\u00a0y") == "x|\u00a0|\u00a0|y");
}

BOOST_AUTO_TEST_CASE(the_llama3_and_qwen2_patterns_split_text_as_published) {
  const auto llama = [](std::string_view text) { return cut(Llama3Scanner<3>(), text); };
  const auto qwen = [](std::string_view text) { return cut(Llama3Scanner<1>(), text); };
  BOOST_TEST(llama("a 12345") == "a| |123|45");
  BOOST_TEST(qwen("a 123") == "a| |1|2|3");
  BOOST_TEST(llama("IT'LL x'\u017f y'S.") == "IT|'LL| x|'\u017f| y|'S|.");
  BOOST_TEST(llama("\tx (y)\n\nz") == "\tx| (|y|)\n\n|z");
  BOOST_TEST(llama("a \n \n  b") == "a| \n \n| | b");
  BOOST_TEST(llama("a  \t") == "a|  \t");
  BOOST_TEST(llama("\u00a0\u00a0x") == "\u00a0|\u00a0x");
}

BOOST_AUTO_TEST_CASE(digits_are_separate_words) {
  const auto words = [](std::string_view text) { return cut(DigitsGpt2Scanner(), text); };
  BOOST_TEST(words("a 12 b") == "a| |1|2| b");
  BOOST_TEST(words("a   1") == "a|   |1");
  BOOST_TEST(words("a   b") == "a|  | b");
  BOOST_TEST(words("x\u0663y") == "x|\u0663|y");
}

BOOST_AUTO_TEST_CASE(known_expressions_are_recognised_by_their_text) {
  for (const WordPattern pattern : {WordPattern::gpt2, WordPattern::llama3, WordPattern::qwen2}) {
    BOOST_TEST((known_pattern(regular_expression(pattern)) == pattern));
    BOOST_TEST((pattern_named(name_of(pattern)) == pattern));
  }
  BOOST_TEST(!known_pattern(R"(\s+)"));
  BOOST_TEST(!known_pattern(""));
  BOOST_TEST(!pattern_named("gpt4"));
}

BOOST_AUTO_TEST_SUITE_END()
