#include "core/json_reader.h"

#include <map>
#include "tests/check.h"

#include "core/error.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(json_reader_test)

using namespace longhand;

namespace {

bool accepts(std::string_view text) {
  const auto read = [&] {
    JsonReader reader(text, "file");
    reader.skip();
    reader.finish();
  };
  return refusal(read) == "accepted";
}

}  // namespace

BOOST_AUTO_TEST_CASE(members_and_elements_are_read_in_order) {
  JsonReader reader(R"( {"a": [1, -20 ,3], "b\u00e9\n": "x\"\ud83d\ude00", "c": {}, "d": [] } )",
                    "file");
  std::map<std::string, std::string> found;
  std::int64_t sum = 0;
  for (reader.open_object(); reader.next_member();) {
    const std::string name(reader.name());
    if (reader.at_array()) {
      for (reader.open_array(); reader.next_element();) sum += reader.integer();
      found[name] = "array";
    } else if (reader.at_string()) {
      found[name] = reader.string();
    } else {
      found[name] = reader.value().dump();
    }
  }
  reader.finish();
  BOOST_TEST(sum == -16);
  BOOST_TEST(found["a"] == "array");
  BOOST_TEST(found["b\u00e9\n"] == "x\"\U0001f600");
  BOOST_TEST(found["c"] == "{}");
  BOOST_TEST(found["d"] == "array");
}

BOOST_AUTO_TEST_CASE(a_skipped_value_can_be_read_later) {
  const std::string text = R"({"late": {"n": [5, "six"]}, "early": 1})";
  const JsonReader whole(text, "file");
  JsonReader reader = whole;
  reader.open_object();
  BOOST_TEST(reader.next_member());
  const std::string_view late = reader.skip();
  BOOST_TEST(late == R"({"n": [5, "six"]})");
  BOOST_TEST(whole.at(late).value() == (Json{{"n", Json::Array{5, "six"}}}));
}

BOOST_AUTO_TEST_CASE(the_grammar_is_that_of_json) {
  for (const std::string_view text :
       {"-0.5e-3", "0", "-0", "1E5", "1e+400", "true", "false", "null", "\"\"", "[[]]", "{}",
        "\"\\ud83d\\ude00\"", "[\"a\",{\"b\":[1,2,{}]}]", " \t\r\n[ ] ", "\"\\/\\b\\f\\u0000\"",
        "\"\x7f\""}) {
    BOOST_TEST_CONTEXT(text) { BOOST_TEST(accepts(text)); }
  }
  for (const std::string_view text : {"",
                                      "{",
                                      "}",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "{\"a\":}",
                                      "{\"a\" 1}",
                                      "{a:1}",
                                      "{\"a\":1,}",
                                      "01",
                                      "1.",
                                      ".5",
                                      "-",
                                      "1e",
                                      "1e+",
                                      "+1",
                                      "0x1",
                                      "NaN",
                                      "Infinity",
                                      "tru",
                                      "nul",
                                      "nullx",
                                      "\"",
                                      "\"a",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\u12g4\"",
                                      "\"\\ud800\"",
                                      "\"\\udc00\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\n\"",
                                      "\"\xff\"",
                                      "'a'",
                                      "[] []",
                                      "[1}",
                                      "{]",
                                      "[1]// comment"}) {
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(!accepts(text));
      BOOST_TEST(!Json::parse(text).has_value());
    }
  }
  const std::string deep(Json::deepest, '['), closed(Json::deepest, ']');
  BOOST_TEST(accepts(deep + closed));
  BOOST_TEST(!accepts('[' + deep + closed + ']'));
  BOOST_TEST(!accepts(std::string(1000000, '[')));
}

BOOST_AUTO_TEST_CASE(an_error_names_the_file_and_the_byte) {
  const auto says = [](std::string_view text) {
    return refusal([&] {
      JsonReader reader(text, "some.json");
      reader.open_array();
      while (reader.next_element()) (void)reader.integer();
      reader.finish();
    });
  };
  BOOST_TEST(says("[1, x]") == "some.json: expected an integer at byte 4, got \"x]\"");
  BOOST_TEST(says("[1, 2") == "some.json: expected ',' or ']' at byte 5, got the end of the text");
  BOOST_TEST(says("[1.5]") == "some.json: expected an integer at byte 1, got \"1.5]\"");
  BOOST_TEST(says("[99999999999999999999]") ==
             "some.json: expected an integer at byte 1, got \"99999999999999999999\"");
  BOOST_TEST(says("[\x80]") == "some.json: not JSON: broken UTF-8 at byte 1");
  BOOST_TEST(says("[] 1") == "some.json: expected the end at byte 3, got \"1\"");
}

BOOST_AUTO_TEST_SUITE_END()
