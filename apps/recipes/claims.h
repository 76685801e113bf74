#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

/// The claims of the reproduced papers (First-After-Last, ChaCAL, task hinting and AttentionSpan),
/// written as conditions on the numbers in our results pages. The program computes the verdicts
/// from the pages' JSON files, so that no verdict is written by hand.
namespace longhand::app {

/// Refers to a cell in the table of a results page. If the page also lists each run, the cell
/// stands for one value per run, otherwise for a single value.
struct ClaimFigure {
  ClaimFigure() = default;
  ClaimFigure(std::string_view in_page, std::string_view in_row, std::string_view in_column)
      : page(in_page), row(in_row), column(in_column) {}

  std::string page;  // name of the page's file in docs/results, without extension
  // Name of the table row. A name that ends in '*' stands for all rows whose names begin with the
  // text before '*'. Each run then has the greatest value of these rows.
  std::string row;
  std::string column;
};

/// A condition on numbers of results pages. It holds if it is true for every run, and holds partly
/// if it is true for more than half of the runs.
struct ClaimCondition {
  enum class Kind {
    above,     // every run of `left` is above every run of `right`, and no 95% intervals overlap
    at_least,  // every run of `left` is at least `bound`
    at_most,   // every run of `left` is at most `bound`
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

/// A part of a claim. `settings` are alternative lists of conditions. The first list whose numbers
/// are all on results pages is used. The part is shown if all conditions of that list hold.
struct ClaimPart {
  std::string_view what;
  std::vector<std::vector<ClaimCondition>> settings;
};

struct Claim {
  /// id: such as "F1"; claim: the ordering or effect that the paper reports.
  std::string_view id, claim;
  std::vector<ClaimPart> parts;
  std::int64_t seeds = 3;  // minimum number of runs for a verdict
};
std::span<const Claim> claims();

/// The verdict on a claim, from weakest to strongest. `shown`: all parts of the claim are shown.
/// `not_yet`: no part holds for more than half of the runs. `part`: all other cases.
enum class Verdict { not_yet, part, shown };
std::string_view name_of(Verdict verdict);

struct JudgedClaim {
  const Claim* claim = nullptr;
  Verdict verdict = Verdict::not_yet;
  std::string figures;  // the compared numbers as text, part by part
  std::string page;     // a results page, such as "fal-table1-laptop.md"; may be empty
};

// The JSON of every results page, as returned by results_in(). Key: name of the page.
using Results = std::map<std::string, Json>;
JudgedClaim judge(const Claim& claim, const Results& results);
std::vector<JudgedClaim> judge_all(const Results& results);

/// A JSON list of objects {id, claim, verdict, figures, page}.
Json claims_json(std::span<const JudgedClaim> judged);
/// The table of verdicts as Markdown. Its links lead to results pages in `folder`.
std::string claims_board(std::span<const JudgedClaim> judged, std::string_view folder);

}  // namespace longhand::app
