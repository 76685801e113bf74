#include "apps/recipes/claims.h"

#include <algorithm>
#include <array>

#include "apps/html/markdown.h"
#include "apps/html/svg.h"
#include "core/error.h"

namespace longhand::app {
namespace {

struct Value {
  double value = 0;
  std::optional<double> low, high;
};

struct Values {
  std::vector<Value> runs;  // values of the runs; empty if the page has no values
  std::int64_t seeds = 0;   // number of seeds of the page's results
  bool apart = false;       // true: one value per run; false: a single value for all runs
};

std::optional<double> number_of(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.number());
}

Value value_of(const Json& row) {
  return {row["value"].number(), number_of(row["low"]), number_of(row["high"])};
}

bool matches(std::string_view pattern, const std::string& name) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

/// The greater of two values of the same run.
Value greater(const Value& a, const Value& b) { return a.value >= b.value ? a : b; }

Values values_of(const ClaimFigure& figure, const Results& results) {
  Values found;
  const auto page = results.find(figure.page);
  if (page == results.end()) return found;
  found.seeds = page->second["seeds"].integer();
  const std::string begin = text(figure.column, ", run ");
  std::optional<Value> mean;
  for (const Json& row : page->second["rows"].elements()) {
    if (!matches(figure.row, row["row"].string())) continue;
    const std::string& column = row["column"].string();
    if (row["in_table"].boolean()) {
      if (column == figure.column) mean = mean ? greater(*mean, value_of(row)) : value_of(row);
    } else if (column.starts_with(begin)) {
      const auto run = static_cast<std::size_t>(std::stoul(column.substr(begin.size())));
      if (found.runs.size() < run) found.runs.resize(run, {-1e300, {}, {}});
      found.runs[run - 1] = greater(found.runs[run - 1], value_of(row));
    }
  }
  found.apart = !found.runs.empty();
  if (!found.apart && mean) found.runs = {*mean};
  return found;
}

std::string decimals(double value) { return html::decimals(value, 3); }

std::string text_of(const Values& values) {
  constexpr std::size_t few = 4;
  if (values.runs.size() > few) {
    const auto [least, most] = std::ranges::minmax(values.runs, {}, &Value::value);
    return text(decimals(least.value), " to ", decimals(most.value));
  }
  std::string all;
  for (const Value& run : values.runs) all += (all.empty() ? "" : ", ") + decimals(run.value);
  return all;
}

/// The result of judging a condition or a part of a claim.
struct Found {
  Verdict verdict = Verdict::not_yet;
  std::string figures;
  bool there = true;  // false: a page or figure is missing
};

/// The verdict if a condition holds for `held` of `all` runs: `shown` if it holds for all runs and
/// there are enough runs, `part` if it holds for more than half of the runs.
Verdict verdict_of(std::size_t held, std::size_t all, bool enough) {
  if (held == all && enough) return Verdict::shown;
  return 2 * held > all ? Verdict::part : Verdict::not_yet;
}

Found check_above(const ClaimCondition& c, const Values& left, const Values& right, bool enough) {
  std::size_t ordered = 0, apart = 0;
  for (const Value& a : left.runs) {
    for (const Value& b : right.runs) {
      ordered += a.value > b.value;
      apart += a.value > b.value && a.low.value_or(a.value) > b.high.value_or(b.value);
    }
  }
  const std::size_t all = left.runs.size() * right.runs.size();
  Verdict verdict = verdict_of(ordered, all, enough);
  if (verdict == Verdict::shown && apart < all) verdict = Verdict::part;
  const bool same_row = c.left.row == c.right.row;
  const auto label = [&](const ClaimFigure& figure) {
    return same_row ? figure.column : figure.row;
  };
  return {verdict, text(same_row ? c.left.row : c.left.column, ": ", label(c.left), " ",
                        text_of(left), verdict == Verdict::shown ? " > " : " against ",
                        label(c.right), " ", text_of(right))};
}

Found check(const ClaimCondition& c, std::int64_t seeds, const Results& results) {
  const Values left = values_of(c.left, results);
  const bool two = c.kind == ClaimCondition::Kind::above || c.kind == ClaimCondition::Kind::within;
  const Values right = two ? values_of(c.right, results) : Values();
  if (left.runs.empty() || (two && right.runs.empty())) return {Verdict::not_yet, "", false};
  const auto runs_of = [](const Values& values) {
    return values.apart ? std::ssize(values.runs) : values.seeds;
  };
  const bool enough = runs_of(left) >= seeds && (!two || runs_of(right) >= seeds);
  if (c.kind == ClaimCondition::Kind::above) return check_above(c, left, right, enough);

  std::size_t held = 0;
  for (std::size_t i = 0; i < left.runs.size(); ++i) {
    const double value = left.runs[i].value;
    switch (c.kind) {
      case ClaimCondition::Kind::at_least:
        held += value >= c.bound;
        break;
      case ClaimCondition::Kind::at_most:
        held += value <= c.bound;
        break;
      default:
        held += value <= right.runs[std::min(i, right.runs.size() - 1)].value + c.bound;
    }
  }
  const std::size_t all = left.runs.size();
  std::string figures = text(c.left.row, ", ", c.left.column, " ", text_of(left));
  figures +=
      two ? text(" against ", c.right.row, " ", text_of(right), " and ", c.bound, " more")
          : text(c.kind == ClaimCondition::Kind::at_least ? ", wanted " : ", at most ", c.bound);
  if (held < all && held > 0) figures += text(" (", held, " of ", all, " runs)");
  return {verdict_of(held, all, enough), figures};
}

Found check(const ClaimPart& part, std::int64_t seeds, const Results& results) {
  for (const auto& setting : part.settings) {
    Found all{Verdict::shown, ""};
    for (const ClaimCondition& condition : setting) {
      const Found one = check(condition, seeds, results);
      all.there = all.there && one.there;
      all.verdict = std::min(all.verdict, one.verdict);
      all.figures += (all.figures.empty() ? "" : "; ") + one.figures;
    }
    if (all.there) return all;
  }
  return {Verdict::not_yet, "no page has the figures", false};
}

constexpr std::array<std::string_view, 3> verdicts{"not yet", "in part", "shown"};

/// The results page to which the verdict on a claim links. The search goes through all parts of the
/// claim and, in each part, through its alternative lists of conditions. It ends at the first list
/// whose pages all exist, and returns the page of this list's first condition. Empty if there is no
/// such list.
std::string page_of(const Claim& claim, const Results& results) {
  for (const ClaimPart& part : claim.parts) {
    for (const auto& setting : part.settings) {
      const auto exists = [&](const ClaimFigure& figure) {
        return figure.page.empty() || results.contains(figure.page);
      };
      const bool there = std::ranges::all_of(
          setting, [&](const ClaimCondition& c) { return exists(c.left) && exists(c.right); });
      if (there && !setting.empty()) return setting.front().left.page + ".md";
    }
  }
  return "";
}

}  // namespace

ClaimCondition above(const ClaimFigure& left, const ClaimFigure& right) {
  return {ClaimCondition::Kind::above, left, right};
}
ClaimCondition at_least(const ClaimFigure& left, double bound) {
  return {ClaimCondition::Kind::at_least, left, {}, bound};
}
ClaimCondition at_most(const ClaimFigure& left, double bound) {
  return {ClaimCondition::Kind::at_most, left, {}, bound};
}
ClaimCondition within(const ClaimFigure& left, const ClaimFigure& right, double bound) {
  return {ClaimCondition::Kind::within, left, right, bound};
}

std::string_view name_of(Verdict verdict) { return verdicts[static_cast<std::size_t>(verdict)]; }

JudgedClaim judge(const Claim& claim, const Results& results) {
  JudgedClaim judged{.claim = &claim, .figures = "", .page = page_of(claim, results)};
  bool all = true, any = false;
  for (const ClaimPart& part : claim.parts) {
    const Found found = check(part, claim.seeds, results);
    all = all && found.verdict == Verdict::shown;
    any = any || found.verdict != Verdict::not_yet;
    judged.figures += (judged.figures.empty() ? "" : ". ") +
                      text(part.what, " (", name_of(found.verdict), "): ", found.figures);
  }
  judged.verdict = all ? Verdict::shown : any ? Verdict::part : Verdict::not_yet;
  return judged;
}

std::vector<JudgedClaim> judge_all(const Results& results) {
  std::vector<JudgedClaim> all;
  for (const Claim& claim : claims()) all.push_back(judge(claim, results));
  return all;
}

Json claims_json(std::span<const JudgedClaim> judged) {
  Json all = Json::array();
  for (const JudgedClaim& one : judged) {
    all.push_back(Json{{"id", one.claim->id},
                       {"claim", one.claim->claim},
                       {"verdict", name_of(one.verdict)},
                       {"figures", one.figures},
                       {"page", one.page}});
  }
  return all;
}

std::string claims_board(std::span<const JudgedClaim> judged, std::string_view folder) {
  std::array<int, verdicts.size()> counts{};
  std::vector<std::vector<std::string>> lines{{"", "the papers' claim", "here", "page"}};
  for (const JudgedClaim& one : judged) {
    ++counts[static_cast<std::size_t>(one.verdict)];
    lines.push_back(
        {std::string(one.claim->id), html::markdown_escape(std::string(one.claim->claim)),
         std::string(name_of(one.verdict)),
         one.page.empty()
             ? ""
             : text("[", one.page.substr(0, one.page.size() - 3), "](", folder, one.page, ")")});
  }
  return text(counts[2], " of ", judged.size(), " are shown, ", counts[1], " in part, ", counts[0],
              " not yet.\n\n", html::markdown_table(lines));
}

}  // namespace longhand::app
