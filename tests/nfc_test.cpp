#include "nn/text/nfc.h"

#include "tests/check.h"

#include "nn/text/unicode.h"

BOOST_AUTO_TEST_SUITE(nfc_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

std::string nfc(std::string_view text) {
  std::string buffer;
  std::vector<Rewritten> changes;
  return std::string(to_nfc(text, buffer, &changes));
}

}  // namespace

BOOST_AUTO_TEST_CASE(marks_are_sorted_and_composed_with_their_base) {
  BOOST_TEST(nfc("e\u0301") == "\u00e9");
  BOOST_TEST(nfc("s\u0307\u0323") == "\u1e69");  // the input has the marks in the wrong order
  BOOST_TEST(nfc("a\u0315\u0300b") == "\u00e0\u0315b");
  // Normalization replaces the signs for angstrom and ohm by letters.
  BOOST_TEST(nfc("\u212b\u2126") == "\u00c5\u03a9");
  BOOST_TEST(nfc("\u0958") == "\u0915\u093c");  // this character is excluded from composition
  BOOST_TEST(nfc("\u1100\u1161\u11a8") == "\uac01");
  BOOST_TEST(nfc("\uac00\u11a8") == "\uac01");
  BOOST_TEST(nfc("\uac01\u11a8") == "\uac01\u11a8");  // the syllable already has a final consonant
  BOOST_TEST(nfc("\u0f73") == "\u0f71\u0f72");
  BOOST_TEST(nfc("\u0301\u0301") == "\u0301\u0301");  // the marks have no base character
}

BOOST_AUTO_TEST_CASE(code_points_newer_than_unicode_9_are_not_changed) {
  // to_nfc() follows Unicode 9. These two code points are composed only since Unicode 13, so they
  // must stay unchanged.
  BOOST_TEST(nfc("\U00011935\U00011930") == "\U00011935\U00011930");
}

BOOST_AUTO_TEST_CASE(rewritten_parts_of_the_text_are_listed) {
  const std::string text = "ab e\u0301 cd \u212b!";
  std::string buffer;
  std::vector<Rewritten> changes;
  const std::string_view normal = to_nfc(text, buffer, &changes);
  BOOST_TEST(normal == "ab \u00e9 cd \u00c5!");
  BOOST_REQUIRE(changes.size() == 2u);
  BOOST_TEST(normal.substr(changes[0].begin, changes[0].end - changes[0].begin) == "\u00e9");
  BOOST_TEST(changes[0].original_begin == 3u);
  BOOST_TEST(changes[0].original_end == 6u);
  BOOST_TEST(text.substr(changes[1].original_begin,
                         changes[1].original_end - changes[1].original_begin) == " \u212b");
  const std::string already = "\u00e9 \u0915\u093f";
  changes.clear();
  BOOST_TEST(to_nfc(already, buffer, &changes).data() == already.data());
  BOOST_TEST(changes.empty());
  BOOST_TEST(to_nfc(text, buffer, nullptr) == "ab \u00e9 cd \u00c5!");
}

BOOST_AUTO_TEST_CASE(the_classes_have_as_many_code_points_as_unicode_16_says) {
  int counts[4] = {};
  for (char32_t c = 0; c < 0x110000; ++c) ++counts[static_cast<int>(class_of(c))];
  BOOST_TEST(counts[static_cast<int>(CodeClass::letter)] == 141028);
  BOOST_TEST(counts[static_cast<int>(CodeClass::number)] == 1911);
  BOOST_TEST(counts[static_cast<int>(CodeClass::space)] == 25);
  for (char32_t c = 0; c < 128; ++c) {
    BOOST_TEST(byte_classes[c] == static_cast<std::uint8_t>(class_of(c)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
