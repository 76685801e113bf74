// Tests the verdicts on the papers' claims, which are computed from the figures of results pages.
#include "apps/recipes/claims.h"

#include <set>

#include "core/error.h"
#include "tests/check.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(claims_test)

using namespace longhand;
using namespace longhand::app;

namespace {

Json row(const std::string& name, const std::string& column, double value, double half,
         bool in_table) {
  return Json{{"row", name},         {"column", column},     {"value", value},
              {"low", value - half}, {"high", value + half}, {"paper", Json()},
              {"in_table", in_table}};
}

/// A results page with the values of models "a" and "b", one value per run. `half` is half the
/// width of the confidence interval of each value.
Results page(const std::vector<double>& a, const std::vector<double>& b, double half = 0.01) {
  Json rows = Json::array();
  for (const auto& [name, values] : {std::pair("a", a), std::pair("b", b)}) {
    rows.push_back(row(name, "accuracy", values.front(), half, true));
    for (std::size_t i = 0; values.size() > 1 && i < values.size(); ++i) {
      rows.push_back(row(name, text("accuracy, run ", i + 1), values[i], half, false));
    }
  }
  return {{"page", Json{{"seeds", static_cast<std::int64_t>(a.size())}, {"rows", rows}}}};
}

const ClaimFigure a{"page", "a", "accuracy"}, b{"page", "b", "accuracy"};

Verdict verdict(const ClaimCondition& condition, const Results& results, std::int64_t seeds = 3) {
  const Claim claim{"X", "x", {{"x", {{condition}}}}, seeds};
  return judge(claim, results).verdict;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_order_is_shown_if_all_runs_agree_and_intervals_do_not_overlap) {
  const auto a_above_b = [](const std::vector<double>& x, const std::vector<double>& y,
                            double half = 0.01) { return verdict(above(a, b), page(x, y, half)); };
  BOOST_TEST((a_above_b({0.9, 0.8, 0.7}, {0.5, 0.6, 0.4}) == Verdict::shown));
  // The run of model a with the value 0.55 is below the run of model b with the value 0.6, so the
  // order is shown only in part.
  BOOST_TEST((a_above_b({0.9, 0.8, 0.55}, {0.5, 0.6, 0.4}) == Verdict::part));
  // Each run of model a is above each run of model b. But the intervals 0.7 +- 0.06 and 0.6 +- 0.06
  // overlap.
  BOOST_TEST((a_above_b({0.9, 0.8, 0.7}, {0.5, 0.6, 0.4}, 0.06) == Verdict::part));
  BOOST_TEST((a_above_b({0.5, 0.6, 0.4}, {0.9, 0.8, 0.7}) == Verdict::not_yet));
  BOOST_TEST((a_above_b({0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}) == Verdict::not_yet));
  // An order counts as shown only if each model has at least three runs. Here each model has two.
  BOOST_TEST((a_above_b({0.9, 0.8}, {0.5, 0.6}) == Verdict::part));
}

BOOST_AUTO_TEST_CASE(a_bound_holds_for_every_run_or_for_more_than_half) {
  const auto with = [](const std::vector<double>& x) { return page(x, x); };
  BOOST_TEST((verdict(at_least(a, 0.9), with({0.9, 1, 0.95})) == Verdict::shown));
  BOOST_TEST((verdict(at_least(a, 0.9), with({0.89, 1, 0.95})) == Verdict::part));
  BOOST_TEST((verdict(at_least(a, 0.9), with({0.89, 0.8, 0.95})) == Verdict::not_yet));
  BOOST_TEST((verdict(at_least(a, 0.9), with({0.95, 1})) == Verdict::part));
  BOOST_TEST((verdict(at_least(a, 0.9), with({0.95, 1}), 2) == Verdict::shown));
  BOOST_TEST((verdict(at_most(a, 0.9), with({0.9, 0.1, 0.5})) == Verdict::shown));
  BOOST_TEST((verdict(at_most(a, 0.9), with({0.95, 0.99, 0.5})) == Verdict::not_yet));
  const auto pairs = page({0.5, 0.6, 0.7}, {0.45, 0.6, 0.72});
  BOOST_TEST((verdict(within(a, b, 0.06), pairs) == Verdict::shown));
  BOOST_TEST((verdict(within(a, b, 0.04), pairs) == Verdict::part));
}

BOOST_AUTO_TEST_CASE(a_claim_is_shown_if_all_its_parts_are_shown) {
  const auto results = page({0.9, 0.8, 0.7}, {0.5, 0.6, 0.4});
  const ClaimPart holds{"holds", {{above(a, b)}}}, fails{"fails", {{at_least(b, 0.9)}}};
  const auto of = [&](std::vector<ClaimPart> parts) {
    const Claim claim{"X", "x", std::move(parts)};
    return judge(claim, results).verdict;
  };
  BOOST_TEST((of({holds, holds}) == Verdict::shown));
  BOOST_TEST((of({holds, fails}) == Verdict::part));
  BOOST_TEST((of({fails, fails}) == Verdict::not_yet));
}

// A claim may list several settings. The first of them that has a results page determines the
// verdict. When the page of the larger setting is added, its verdict replaces the better verdict of
// the smaller setting.
BOOST_AUTO_TEST_CASE(the_first_setting_that_has_a_results_page_counts) {
  const ClaimFigure larger{"larger", "a", "accuracy"};
  const Claim claim{"X", "x", {{"x", {{at_least(larger, 0.95)}, {at_least(a, 0.5)}}}}};
  Results results = page({0.9, 0.8, 0.7}, {0, 0, 0});
  BOOST_TEST((judge(claim, results).verdict == Verdict::shown));
  BOOST_TEST(judge(claim, results).page == "page.md");
  results["larger"] = results["page"];
  BOOST_TEST((judge(claim, results).verdict == Verdict::not_yet));
  BOOST_TEST(judge(claim, results).page == "larger.md");
  BOOST_TEST((judge(claim, {}).verdict == Verdict::not_yet));
  BOOST_TEST(judge(claim, {}).page.empty());
  const ClaimFigure missing{"missing", "a", "accuracy"};
  const Claim pair{"X", "x", {{"x", {{above(larger, missing)}, {at_least(a, 0.5)}}}}};
  BOOST_TEST(judge(pair, results).page == "page.md");
}

BOOST_AUTO_TEST_CASE(a_row_with_a_star_takes_the_greatest_value_of_each_run) {
  Json rows = Json::array();
  for (const auto& [name, values] : {std::pair("layer 0", std::vector{0.1, 1.0, 0.2}),
                                     std::pair("layer 1", std::vector{1.0, 0.3, 1.0})}) {
    rows.push_back(row(name, "share", 0.5, 0, true));
    for (std::size_t i = 0; i < 3; ++i) {
      rows.push_back(row(name, text("share, run ", i + 1), values[i], 0, false));
    }
  }
  const Results results{{"page", Json{{"seeds", 3}, {"rows", rows}}}};
  BOOST_TEST((verdict(at_least({"page", "layer *", "share"}, 1), results) == Verdict::shown));
  BOOST_TEST((verdict(at_least({"page", "layer 0", "share"}, 1), results) == Verdict::not_yet));
}

BOOST_AUTO_TEST_CASE(every_claim_of_the_papers_is_judged_once) {
  std::set<std::string_view> ids;
  for (const Claim& claim : claims()) {
    BOOST_TEST(ids.insert(claim.id).second, claim.id);
    BOOST_TEST(!claim.parts.empty());
    for (const ClaimPart& part : claim.parts) BOOST_TEST(!part.settings.empty());
  }
  BOOST_TEST(ids.size() == 23u);
  const auto judged = judge_all({});
  BOOST_TEST(claims_json(judged).size() == 23u);
  BOOST_TEST(contains(claims_board(judged, "x/"), "0 of 23 are shown, 0 in part, 23 not yet."));
}

BOOST_AUTO_TEST_SUITE_END()
