#include "tasks/answers.h"

#include "core/error.h"
#include "core/json.h"

namespace longhand::tasks {

Answer Answer::parse(std::string_view line, std::string_view source) {
  const Json pair = Json::parse(line).value_or(nullptr);
  const Json* const prompt = pair.is_object() ? pair.find("prompt") : nullptr;
  const Json* const answer = pair.is_object() ? pair.find("answer") : nullptr;
  LONGHAND_CHECK(prompt && prompt->is_string() && answer && answer->is_string(), source,
                 R"(: expected {"prompt": "...", "answer": "..."})");
  return {prompt->string(), answer->string()};
}

}  // namespace longhand::tasks
