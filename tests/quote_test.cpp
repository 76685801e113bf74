#include "core/quote.h"

#include <boost/test/unit_test.hpp>
#include <string>

using namespace longhand;

BOOST_AUTO_TEST_SUITE(quote_test)

BOOST_AUTO_TEST_CASE(plain_and_wide_text_stays_as_it_is) {
  BOOST_TEST(quote("") == "\"\"");
  BOOST_TEST(quote("layers.0.weight") == "\"layers.0.weight\"");
  BOOST_TEST(quote("größe 数 😀") == "\"größe 数 😀\"");
}

BOOST_AUTO_TEST_CASE(what_would_break_a_line_is_escaped) {
  BOOST_TEST(quote("a\nb\t\x7f") == "\"a\\x0ab\\x09\\x7f\"");
  BOOST_TEST(quote("say \"hi\" \\") == "\"say \\\"hi\\\" \\\\\"");
}

BOOST_AUTO_TEST_CASE(broken_utf8_is_escaped_byte_by_byte) {
  BOOST_TEST(quote("\xff") == "\"\\xff\"");
  BOOST_TEST(quote("\xc3") == "\"\\xc3\"");                    // cut off
  BOOST_TEST(quote("\xc0\xaf") == "\"\\xc0\\xaf\"");           // overlong
  BOOST_TEST(quote("\xed\xa0\x80") == "\"\\xed\\xa0\\x80\"");  // surrogate
}

BOOST_AUTO_TEST_CASE(long_text_is_cut) {
  BOOST_TEST(quote(std::string(60, 'x')) == '"' + std::string(60, 'x') + '"');
  BOOST_TEST(quote(std::string(61, 'x')) == '"' + std::string(60, 'x') + "...\"");
}

BOOST_AUTO_TEST_SUITE_END()
