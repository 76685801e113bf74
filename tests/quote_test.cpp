#include "core/quote.h"

#include <string>
#include "tests/check.h"

#include "core/error.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(quote_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(plain_and_wide_text_is_not_changed) {
  BOOST_TEST(quote("") == "\"\"");
  BOOST_TEST(quote("layers.0.weight") == "\"layers.0.weight\"");
  BOOST_TEST(quote("größe 数 😀") == "\"größe 数 😀\"");
}

BOOST_AUTO_TEST_CASE(characters_that_break_a_line_are_escaped) {
  BOOST_TEST(quote("a\nb\t\x7f") == "\"a\\x0ab\\x09\\x7f\"");
  BOOST_TEST(quote("say \"hi\" \\") == "\"say \\\"hi\\\" \\\\\"");
}

BOOST_AUTO_TEST_CASE(broken_utf8_is_escaped_byte_by_byte) {
  BOOST_TEST(quote("\xff") == "\"\\xff\"");
  BOOST_TEST(quote("\xc3") == "\"\\xc3\"");                    // a truncated character
  BOOST_TEST(quote("\xc0\xaf") == "\"\\xc0\\xaf\"");           // an overlong encoding
  BOOST_TEST(quote("\xed\xa0\x80") == "\"\\xed\\xa0\\x80\"");  // a surrogate
}

BOOST_AUTO_TEST_CASE(invisible_and_direction_changing_characters_are_escaped) {
  BOOST_TEST(quote("a\u202eb") == "\"a\\u{202e}b\"");      // right-to-left override
  BOOST_TEST(quote("\xc2\x9b[2J") == "\"\\u{009b}[2J\"");  // a C1 control, equivalent to ESC [
  BOOST_TEST(quote("\u200b\u2066\u2028\ufeff\u00ad") ==
             "\"\\u{200b}\\u{2066}\\u{2028}\\u{feff}\\u{00ad}\"");
  BOOST_TEST(quote("\U000e0041") == "\"\\u{e0041}\"");  // a tag character
  BOOST_TEST(quote("\u00a0\u00ae\u2010\u2027\u202f\u2070") ==
             "\"\u00a0\u00ae\u2010\u2027\u202f\u2070\"");
}

BOOST_AUTO_TEST_CASE(printable_text_is_complete_and_has_no_quotes) {
  BOOST_TEST(printable("say \"größe\" \\x") == "say \"größe\" \\x");
  BOOST_TEST(printable("a\nb\x1b[2J\u202e\xff") == "a\\x0ab\\x1b[2J\\u{202e}\\xff");
  const std::string text(1000, 'x');
  BOOST_TEST(printable(text) == text);
  BOOST_TEST(printable(printable("a\n\u202e")) == printable("a\n\u202e"));
}

BOOST_AUTO_TEST_CASE(printable_lines_keep_their_breaks) {
  BOOST_TEST(printable_lines("a\x1b\n\nb\u202e\n") == "a\\x1b\n\nb\\u{202e}\n");
}

BOOST_AUTO_TEST_CASE(every_message_is_one_line_of_printable_text) {
  BOOST_TEST(refusal([] { fail("folder\n\u202e/\xff: cannot be read"); }) ==
             "folder\\x0a\\u{202e}/\\xff: cannot be read");
}

BOOST_AUTO_TEST_CASE(long_text_is_cut) {
  BOOST_TEST(quote(std::string(60, 'x')) == '"' + std::string(60, 'x') + '"');
  BOOST_TEST(quote(std::string(61, 'x')) == '"' + std::string(60, 'x') + "...\"");
  // The maximum length applies to the escaped text, not to the original text.
  std::string controls;
  for (int i = 0; i < 60; ++i) controls += "\u0098";
  BOOST_TEST(quote(controls).size() ==
             8u * 8 + 5);  // \u{0098} eight times, the quotes and the ellipsis
}

BOOST_AUTO_TEST_SUITE_END()
