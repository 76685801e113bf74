#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

/// The four papers' claims, as rules over the figures of our results pages. The program computes
/// the verdicts from the pages' JSON; nobody writes them by hand.
namespace longhand::app {

/// A figure of a results page: one value per run, or a single value if the page has no runs.
struct ClaimFigure {
  ClaimFigure() = default;
  ClaimFigure(std::string_view in_page, std::string_view in_row, std::string_view in_column)
      : page(in_page), row(in_row), column(in_column) {}

  std::string page;  // name of its file in docs/results, without extension
  // if it ends in '*': the greatest value of each run over all rows with this prefix
  std::string row;
  std::string column;
};

/// One condition on figures. Conditions hold for every run, fail, or hold for more than half of the
/// runs.
struct ClaimCondition {
  enum class Kind {
    above,  // every run of `left` lies above every run of `right`, with their 95% intervals apart
    at_least,  // every run of `left` is `bound` or more
    at_most,   // every run of `left` is `bound` or less
    within,    // every run of `left` exceeds the same run of `right` by at most `bound`
  };
  Kind kind = Kind::above;
  ClaimFigure left, right = {};
  double bound = 0;
};

ClaimCondition above(const ClaimFigure& left, const ClaimFigure& right);
ClaimCondition at_least(const ClaimFigure& left, double bound);
ClaimCondition at_most(const ClaimFigure& left, double bound);
ClaimCondition within(const ClaimFigure& left, const ClaimFigure& right, double bound);

/// A part of a claim, shown if all conditions of a setting hold. The first setting whose pages all
/// exist is used.
struct ClaimPart {
  std::string_view what;
  std::vector<std::vector<ClaimCondition>> settings;
};

struct Claim {
  std::string_view id, claim;  // "F1", and the ordering or effect that the paper reports
  std::vector<ClaimPart> parts;
  std::int64_t seeds = 3;  // minimum number of runs
};
std::span<const Claim> claims();

/// shown: all parts are shown. not_yet: no part is shown and none holds for more than half of the
/// runs. From the least to the most.
enum class Verdict { not_yet, part, shown };
std::string_view name_of(Verdict verdict);

struct JudgedClaim {
  const Claim* claim = nullptr;
  Verdict verdict = Verdict::not_yet;
  std::string figures;  // what was compared, part by part
  std::string page;     // the first page that was read, or empty
};

using Results = std::map<std::string, Json>;  // as results_in() returns
JudgedClaim judge(const Claim& claim, const Results& results);
std::vector<JudgedClaim> judge_all(const Results& results);

/// A list of {id, claim, verdict, figures, page}.
Json claims_json(std::span<const JudgedClaim> judged);
/// The board as Markdown; links lead into `folder`.
std::string claims_board(std::span<const JudgedClaim> judged, std::string_view folder);

}  // namespace longhand::app
