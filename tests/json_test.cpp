#include "core/json.h"

#include <cmath>
#include <limits>
#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(json_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(a_list_of_pairs_is_an_object_and_any_other_an_array) {
  const Json both{{"b", 1}, {"a", {1, 2.5, "x", nullptr, true}}, {"none", {}}};
  BOOST_TEST(both.dump() == R"({"b":1,"a":[1,2.5,"x",null,true],"none":null})");
  BOOST_TEST((Json{"a", 1}.dump() == R"(["a",1])"));
  BOOST_TEST(Json(std::vector<std::string>{"a", "b"}).dump() == R"(["a","b"])");
  BOOST_TEST((Json{{"object", Json::object()}, {"array", Json::array()}}.dump(2) ==
              "{\n  \"object\": {},\n  \"array\": []\n}"));
  BOOST_TEST((Json{{"list", {1, 2}}}.dump(1) == "{\n \"list\": [\n  1,\n  2\n ]\n}"));
}

BOOST_AUTO_TEST_CASE(written_json_is_read_back) {
  const Json before{{"least", std::numeric_limits<std::int64_t>::min()},
                    {"most", std::numeric_limits<std::uint64_t>::max()},
                    {"tenth", 0.1},
                    {"tiny", 4.9e-324},
                    {"whole", 3.0},
                    {"text", "\"\\ \n\x01 \xc3\xa9"},
                    {"rows", {{{"a", 1}}, {{"a", false}}}}};
  for (const int indent : {-1, 2}) {
    const auto after = Json::parse(before.dump(indent));
    BOOST_REQUIRE(after.has_value());
    BOOST_TEST(*after == before);
  }
  BOOST_TEST(before.dump().find('\n') == std::string::npos);
  BOOST_TEST(!Json::parse("3.0")->is_integer());
  BOOST_TEST(*Json::parse("3.0") == 3);
}

BOOST_AUTO_TEST_CASE(a_real_number_has_the_fewest_digits_and_a_point_or_an_exponent) {
  const std::vector<std::pair<double, std::string>> cases{
      {0, "0.0"},
      {-0.0, "-0.0"},
      {3, "3.0"},
      {-1.5, "-1.5"},
      {0.1, "0.1"},
      {1e-4, "0.0001"},
      {1.25e-3, "0.00125"},
      {1e-5, "1e-05"},
      {1.5e-5, "1.5e-05"},
      {123456.75, "123456.75"},
      {1e14, "100000000000000.0"},
      {1e15, "1e+15"},
      {1.25e300, "1.25e+300"},
      {4.9e-324, "5e-324"},
      {1.0 / 3, "0.3333333333333333"},
      {std::numeric_limits<double>::max(), "1.7976931348623157e+308"}};
  for (const auto& [value, text] : cases) {
    BOOST_TEST(Json(value).dump() == text);
    BOOST_TEST(Json::parse(text)->number() == value);
  }
}

BOOST_AUTO_TEST_CASE(numbers_out_of_range_become_zero_or_are_refused) {
  BOOST_TEST(Json::parse("1e-400")->number() == 0.0);
  BOOST_TEST(Json::parse("-0")->is_integer());
  BOOST_TEST(Json::parse("9223372036854775807")->is_int64());
  BOOST_TEST(!Json::parse("9223372036854775808")->is_int64());
  BOOST_TEST(!Json::parse("1e400").has_value());
  BOOST_TEST(!Json::parse("-1e5000").has_value());
  BOOST_TEST(Json::parse("18446744073709551616")->number() == 0x1p64);
  BOOST_TEST(!Json::parse("18446744073709551616")->is_integer());
}

BOOST_AUTO_TEST_CASE(control_characters_are_escaped) {
  BOOST_TEST(Json("\b\t\n\f\r\"\\/\x01\x1f\x7f").dump() ==
             "\"\\b\\t\\n\\f\\r\\\"\\\\/\\u0001\\u001f\x7f\"");
}

BOOST_AUTO_TEST_CASE(non_finite_numbers_become_null_and_broken_text_is_replaced) {
  BOOST_TEST(Json(std::nan("")).dump() == "null");
  BOOST_TEST(Json(std::numeric_limits<double>::infinity()).dump() == "null");
  BOOST_TEST(Json("a\xff").dump() == "\"a\xef\xbf\xbd\"");
}

BOOST_AUTO_TEST_CASE(members_keep_their_order_and_are_added_by_name) {
  Json object;
  object["z"] = 1;
  object["a"] = {1, 2};
  object["z"] = "again";
  BOOST_TEST(object.dump() == R"({"z":"again","a":[1,2]})");
  BOOST_TEST(object.size() == 2u);
  BOOST_TEST(object["a"][1] == 2);
  BOOST_TEST(object.contains("a"));
  BOOST_TEST(!object.find("b"));
}

BOOST_AUTO_TEST_CASE(reading_a_missing_member_is_an_error) {
  const Json object{{"a", {1}}, {"big", std::numeric_limits<std::uint64_t>::max()}};
  BOOST_CHECK_THROW(object["b"], Error);
  BOOST_CHECK_THROW(object["a"][1], Error);
  BOOST_CHECK_THROW(object["a"]["x"], Error);
  BOOST_CHECK_THROW(object["a"].string(), Error);
  BOOST_CHECK_THROW(object["a"].number(), Error);
  BOOST_CHECK_THROW(object["big"].integer(), Error);
  BOOST_CHECK_THROW(Json(1.0).integer(), Error);
  BOOST_CHECK_THROW(Json(1).boolean(), Error);
  BOOST_CHECK_THROW(Json().elements(), Error);
  BOOST_CHECK_THROW(Json(1).push_back(2), Error);
  BOOST_TEST(object["big"].number() == 0x1p64);
}

BOOST_AUTO_TEST_CASE(text_that_is_not_json_gives_no_value) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\" 1}", "nul", "1 2", "\"\xff\"", "[NaN]",
                           "{1:2}", "\"\n\"", "]"}) {
    BOOST_TEST(!Json::parse(text).has_value(), text);
  }
  BOOST_TEST(!Json::parse(std::string_view("{}\0", 3)).has_value());
  BOOST_TEST(!Json::parse(std::string_view("{}\0more", 7)).has_value());
  BOOST_TEST(Json::parse(R"({"a":1,"b":2,"a":3,"c":4,"a":5})")->dump() == R"({"b":2,"c":4,"a":5})");
  const auto nested = [](std::size_t deep) {
    return std::string(deep, '[') + std::string(deep, ']');
  };
  BOOST_TEST(Json::parse(nested(Json::deepest)).has_value());
  BOOST_TEST(!Json::parse(nested(Json::deepest + 1)).has_value());
  BOOST_TEST(!Json::parse(std::string(1 << 20, '[')).has_value());
  // A text may have at most 4 million JSON values. An array with `count` elements counts as
  // `count` + 1 values.
  const auto many = [](std::size_t count) {
    std::string text(2 * count + 1, ',');
    for (std::size_t i = 1; i < text.size(); i += 2) text[i] = '0';
    text.front() = '[';
    text.back() = ']';
    return text;
  };
  BOOST_TEST(Json::parse(many(3'999'999)).has_value());
  BOOST_TEST(!Json::parse(many(4'000'000)).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
