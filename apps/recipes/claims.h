#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

/// What the four papers claim, as rules over the figures of our pages. The program reads the
/// verdict off the pages' JSON; nobody writes it.
namespace longhand::app {

/// A figure of a page of results: the value of each run, or one value where the page has no runs.
struct ClaimFigure {
  ClaimFigure() = default;
  ClaimFigure(std::string_view in_page, std::string_view in_row, std::string_view in_column)
      : page(in_page), row(in_row), column(in_column) {}

  std::string page;  // the stem of its file in docs/results
  std::string row;   // ending in '*': the greatest value of each run over all rows that begin so
  std::string column;
};

/// One condition on figures. Conditions hold for every run, fail, or hold for more than half of the
/// runs.
struct ClaimCondition {
  enum class Kind {
    above,  // every run of `left` lies above every run of `right`, with their 95% intervals apart
    at_least,  // every run of `left` is `bound` or more
    at_most,   // every run of `left` is `bound` or less
    within,    // every run of `left` exceeds the same run of `right` by `bound` at most
  };
  Kind kind = Kind::above;
  ClaimFigure left, right = {};
  double bound = 0;
};

ClaimCondition above(const ClaimFigure& left, const ClaimFigure& right);
ClaimCondition at_least(const ClaimFigure& left, double bound);
ClaimCondition at_most(const ClaimFigure& left, double bound);
ClaimCondition within(const ClaimFigure& left, const ClaimFigure& right, double bound);

/// A part of a claim. It is shown when all conditions of one setting hold. Settings are tried in
/// their order; the first whose pages all exist counts.
struct ClaimPart {
  std::string_view what;
  std::vector<std::vector<ClaimCondition>> settings;
};

struct Claim {
  std::string_view id, claim;  // "F1", and the ordering or effect that the paper reports
  std::vector<ClaimPart> parts;
  std::int64_t seeds = 3;  // fewer runs of a figure show nothing
};
std::span<const Claim> claims();

/// shown: all parts are. open: no part is shown and none holds for more than half of the runs.
enum class Verdict { shown, part, open };
std::string_view name_of(Verdict verdict);

struct JudgedClaim {
  const Claim* claim = nullptr;
  Verdict verdict = Verdict::open;
  std::string figures;  // what was compared, part by part
  std::string page;     // the first page that was read; empty: there is none
};

using Results = std::map<std::string, Json>;  // as results_in() returns
JudgedClaim judge(const Claim& claim, const Results& results);
std::vector<JudgedClaim> judge_all(const Results& results);

/// A list of {id, claim, verdict, figures, page}.
Json claims_json(std::span<const JudgedClaim> judged);
/// The board as Markdown; links lead into `folder`.
std::string claims_board(std::span<const JudgedClaim> judged, std::string_view folder);

}  // namespace longhand::app
