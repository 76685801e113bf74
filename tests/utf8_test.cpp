#include "core/utf8.h"

#include "tests/check.h"

BOOST_AUTO_TEST_SUITE(utf8_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(every_code_point_is_written_and_read_and_nothing_else_is_valid) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    std::string text;
    append_utf8(text, c);
    const bool surrogate = c >= 0xd800 && c < 0xe000;
    BOOST_REQUIRE((find_broken_utf8(text) == std::string::npos) == !surrogate);
    if (surrogate) continue;
    BOOST_REQUIRE(count_code_points(text + "a" + text) == 3u);
    const CodePoint point = decode_utf8(text.data());
    BOOST_REQUIRE(point.value == c);
    BOOST_REQUIRE(point.length == text.size());
    BOOST_REQUIRE(replace_broken_utf8(text) == text);
  }
}

BOOST_AUTO_TEST_CASE(a_text_is_cut_between_characters) {
  const std::string text = "a\u00e9\u20acz";
  for (std::size_t count = 0; count <= 4; ++count) {
    const std::string first(first_code_points(text, count));
    BOOST_TEST(count_code_points(first) == count);
    BOOST_TEST(find_broken_utf8(first) == std::string::npos);
    BOOST_TEST(text.starts_with(first));
  }
  BOOST_TEST(first_code_points(text, 9) == text);
}

BOOST_AUTO_TEST_CASE(the_first_invalid_byte_is_found_at_any_position) {
  for (std::size_t place = 0; place < 40; ++place) {
    for (const std::size_t after : {0, 1, 7, 8, 20}) {
      const std::string text = std::string(place, 'a') + "\xc3" + std::string(after, 'b');
      BOOST_TEST(find_broken_utf8(text) == place);
    }
  }
  for (const std::string broken : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                                   "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5", "\xff"}) {
    BOOST_TEST(find_broken_utf8("\xc3\xa9" + broken) == 2u);
  }
}

BOOST_AUTO_TEST_CASE(each_maximal_invalid_part_becomes_one_replacement_character) {
  const std::string mark = "\xef\xbf\xbd";
  BOOST_TEST(replace_broken_utf8("a\xffz") == "a" + mark + "z");
  BOOST_TEST(replace_broken_utf8("\xe2\x82") == mark);             // a possible start of U+20AC
  BOOST_TEST(replace_broken_utf8("\xf0\x9f\x98z") == mark + "z");  // a possible start of U+1F600
  BOOST_TEST(replace_broken_utf8("\xed\xa0\x80") == mark + mark + mark);
  BOOST_TEST(replace_broken_utf8("\xe2\xe2\x82\xac") == mark + "\xe2\x82\xac");
}

BOOST_AUTO_TEST_SUITE_END()
