#include "tasks/answers.h"

#include <limits>

#include "core/error.h"
#include "core/json.h"
#include "core/utf8.h"

namespace longhand::tasks {
namespace {

Json parse_line(std::string_view line, std::string_view source) {
  const std::size_t broken = find_broken_utf8(line);
  LONGHAND_CHECK(broken == std::string_view::npos, source,
                 ": expected UTF-8, got an invalid byte at position ", broken + 1);
  return Json::parse(line).value_or(nullptr);
}

Answer answer_of(const Json& record, std::string_view source) {
  const Json* const prompt = record.is_object() ? record.find("prompt") : nullptr;
  const Json* const answer = record.is_object() ? record.find("answer") : nullptr;
  LONGHAND_CHECK(prompt && prompt->is_string() && answer && answer->is_string(), source,
                 ": expected {\"prompt\": \"...\", \"answer\": \"...\"}");
  return {prompt->string(), answer->string()};
}

std::optional<std::int32_t> index_in(const Json& json) {
  if (!json.is_int64() || json.integer() < 0 ||
      json.integer() > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(json.integer());
}

/// Parses the member `labels` of a record. Throws an Error if it is malformed, or if its entries
/// are not in ascending order of token index and label number.
std::vector<RecordMarks::Label> labels_of(const Json& labels, std::string_view source) {
  LONGHAND_CHECK(
      labels.is_array() && !labels.empty(), source,
      R"(: "labels": expected a non-empty list of [i, "label"], where i is a token's index)");
  std::vector<RecordMarks::Label> all;
  for (const Json& one : labels.elements()) {
    const std::size_t size = one.is_array() ? one.size() : 0;
    const bool is_label = (size == 2 || size == 3) && one[size - 1].is_string();
    const auto token = is_label ? index_in(one[std::size_t{0}]) : std::nullopt;
    const auto group = size == 3 && is_label ? index_in(one[std::size_t{1}]) : 0;
    LONGHAND_CHECK(
        token && group && *group < most_labels, source,
        R"(: "labels": expected [i, "label"] or [i, g, "label"], where i is a token's index )"
        "and g a label number below ",
        most_labels, ", got ", one.dump());
    const std::string& label = one[size - 1].string();
    LONGHAND_CHECK(!label.empty() && label.find(' ') == std::string::npos, source,
                   R"(: "labels": expected labels without spaces, got )", one.dump());
    LONGHAND_CHECK(
        all.empty() || std::pair(all.back().token, all.back().group) < std::pair(*token, *group),
        source, R"(: "labels": expected ascending indices from 0, got )", one.dump());
    all.push_back({*token, *group, label});
  }
  return all;
}

}  // namespace

Answer Answer::parse(std::string_view line, std::string_view source) {
  return answer_of(parse_line(line, source), source);
}

Answer Answer::parse(std::string_view line, std::string_view source, RecordMarks& marks,
                     bool with_labels) {
  const Json record = parse_line(line, source);
  Answer answer = answer_of(record, source);
  if (const Json* const pairs = record.find("pairs")) {
    LONGHAND_CHECK(pairs->is_array(), source, ": \"pairs\": expected a list of pairs [i, j]");
    for (const Json& pair : pairs->elements()) {
      const bool is_pair = pair.is_array() && pair.size() == 2;
      const auto i = is_pair ? index_in(pair[std::size_t{0}]) : std::nullopt;
      const auto j = is_pair ? index_in(pair[std::size_t{1}]) : std::nullopt;
      LONGHAND_CHECK(i && j && *j < *i, source,
                     ": \"pairs\": expected [i, j] with 0 <= j < i, got ", pair.dump());
      marks.pairs.emplace_back(*i, *j);
    }
  }
  if (const Json* const scored = record.find("scored")) {
    LONGHAND_CHECK(scored->is_array() && !scored->empty(), source,
                   ": \"scored\": expected a non-empty list of token indices within the answer");
    marks.scored.emplace();
    for (const Json& one : scored->elements()) {
      const auto i = index_in(one);
      LONGHAND_CHECK(i && (marks.scored->empty() || marks.scored->back() < *i), source,
                     ": \"scored\": expected ascending indices that are at least 0, got ",
                     one.dump());
      marks.scored->push_back(*i);
    }
  }
  const Json* const labels = with_labels ? record.find("labels") : nullptr;
  if (labels) marks.labels = labels_of(*labels, source);
  return answer;
}

}  // namespace longhand::tasks
