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

}  // namespace

Answer Answer::parse(std::string_view line, std::string_view source) {
  return answer_of(parse_line(line, source), source);
}

Answer Answer::parse(std::string_view line, std::string_view source, RecordMarks& marks) {
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
  return answer;
}

}  // namespace longhand::tasks
