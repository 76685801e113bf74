#include "apps/serve/completion_request.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"

namespace longhand::app {
namespace {

// Maximum number of stop texts of a request, and maximum number of bytes of each stop text.
constexpr std::size_t most_stops = 16, longest_stop = 1000;

/// The fields of a JSON object. A field whose value is null counts as missing.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  const Json* find(std::string_view name) const {
    const Json* const value = object_.find(name);
    return value && !value->is_null() ? value : nullptr;
  }
  double number(std::string_view name, double least, double most, double otherwise) const {
    const Json* const value = find(name);
    if (!value) return otherwise;
    LONGHAND_CHECK(value->is_number() && value->number() >= least && value->number() <= most, name,
                   ": expected a number from ", least, " to ", most, ", got ", shown(*value));
    return value->number();
  }
  std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most,
                       std::int64_t otherwise) const {
    const Json* const value = find(name);
    if (!value) return otherwise;
    LONGHAND_CHECK(value->is_int64() && value->integer() >= least && value->integer() <= most, name,
                   ": expected an integer from ", least, " to ", most, ", got ", shown(*value));
    return value->integer();
  }
  bool flag(std::string_view name, bool otherwise) const {
    const Json* const value = find(name);
    LONGHAND_CHECK(!value || value->is_boolean(), name, ": expected true or false, got ",
                   shown(*value));
    return value ? value->boolean() : otherwise;
  }
  /// Throws an Error unless the field is missing or has this value.
  void only(std::string_view name, const Json& value) const {
    const Json* const found = find(name);
    LONGHAND_CHECK(!found || *found == value, name, ": this server supports only ", value, ", got ",
                   shown(*found));
  }
  /// Throws an Error unless the field is missing, false or empty.
  void none(std::string_view name) const {
    const Json* const found = find(name);
    const bool is_list = found && (found->is_array() || found->is_object());
    LONGHAND_CHECK(!found || *found == Json(false) || (is_list && found->empty()), name,
                   ": this server does not support this field");
  }

 private:
  /// The value as JSON, cut off so that an error stays one short line.
  static std::string shown(const Json& value) {
    std::string json = value.dump();
    if (json.size() > 60) json = json.substr(0, 60) + "...";
    return printable(json);
  }
  const Json& object_;
};

/// The text of a message: a string, or a list of parts of the type "text".
std::string text_of(const Json& content) {
  if (content.is_string()) return content.string();
  LONGHAND_CHECK(content.is_array(), "messages: expected a text as \"content\"");
  std::string all;
  for (const Json& part : content) {
    const Json* const type = part.is_object() ? part.find("type") : nullptr;
    const Json* const text = part.is_object() ? part.find("text") : nullptr;
    LONGHAND_CHECK(type && *type == Json("text") && text && text->is_string(),
                   "messages: expected only parts of the type \"text\" in \"content\"");
    all += text->string();
  }
  return all;
}

std::vector<nn::ChatMessage> messages_in(const Fields& fields) {
  using Role = nn::ChatMessage::Role;
  const Json* const list = fields.find("messages");
  LONGHAND_CHECK(list && list->is_array() && !list->empty(),
                 "messages: expected a list of at least one message");
  std::vector<nn::ChatMessage> messages;
  for (const Json& message : *list) {
    LONGHAND_CHECK(message.is_object(), "messages: expected objects with \"role\" and \"content\"");
    const Json* const role = message.find("role");
    const Json* const content = message.find("content");
    LONGHAND_CHECK(role && role->is_string() && content,
                   "messages: expected objects with \"role\" and \"content\"");
    const std::string& name = role->string();
    LONGHAND_CHECK(name == "system" || name == "developer" || name == "user" || name == "assistant",
                   "messages: expected the role system, developer, user or assistant, got ",
                   quote(name));
    messages.push_back({name == "user"        ? Role::user
                        : name == "assistant" ? Role::assistant
                                              : Role::system,
                        text_of(*content)});
  }
  LONGHAND_CHECK(messages.back().role == Role::user,
                 "messages: expected the role user in the last message");
  return messages;
}

void read_prompt(const Fields& fields, CompletionRequest& request) {
  const Json* prompt = fields.find("prompt");
  LONGHAND_CHECK(prompt, "prompt: expected a text or a list of tokens, got no prompt");
  if (prompt->is_array() && prompt->size() == 1 && !(*prompt)[0].is_number()) {
    prompt = &(*prompt)[0];
  }
  if (prompt->is_string()) {
    request.prompt = prompt->string();
    return;
  }
  const auto is_token = [](const Json& token) {
    return token.is_int64() && token.integer() >= 0 &&
           token.integer() <= std::numeric_limits<std::int32_t>::max();
  };
  LONGHAND_CHECK(prompt->is_array() && std::ranges::all_of(*prompt, is_token),
                 "prompt: expected one text or one list of tokens");
  for (const Json& token : *prompt) {
    request.prompt_tokens.push_back(static_cast<std::int32_t>(token.integer()));
  }
}

std::vector<std::string> stops_in(const Fields& fields) {
  const Json* const stop = fields.find("stop");
  if (!stop) return {};
  const Json list = stop->is_string() ? Json(Json::Array{*stop}) : *stop;
  LONGHAND_CHECK(list.is_array() && list.size() <= most_stops,
                 "stop: expected a text or a list of at most ", most_stops, " texts");
  std::vector<std::string> stops;
  for (const Json& text : list) {
    LONGHAND_CHECK(
        text.is_string() && !text.string().empty() && text.string().size() <= longest_stop,
        "stop: expected texts of 1 to ", longest_stop, " bytes");
    stops.push_back(text.string());
  }
  return stops;
}

}  // namespace

CompletionRequest read_completion_request(std::string_view body, CompletionRequest otherwise) {
  const std::optional<Json> json = Json::parse(body);
  LONGHAND_CHECK(json && json->is_object(), "expected a JSON object as the body of the request");
  const Fields fields(*json);
  CompletionRequest request = std::move(otherwise);
  if (request.is_chat) {
    request.messages = messages_in(fields);
  } else {
    read_prompt(fields, request);
  }
  for (const char* name : {"n", "best_of"}) fields.only(name, 1);
  for (const char* name : {"presence_penalty", "frequency_penalty"}) fields.only(name, 0);
  for (const char* name : {"echo", "logprobs", "logit_bias", "tools", "functions", "suffix"}) {
    fields.none(name);
  }
  fields.only("response_format", Json{{"type", "text"}});
  request.most = fields.integer("max_tokens", 1, 1 << 24, request.most);
  request.most = fields.integer("max_completion_tokens", 1, 1 << 24, request.most);
  nn::Sampling& sampling = request.sampling;
  sampling.temperature = fields.number("temperature", 0, 1000, sampling.temperature);
  sampling.top_p = fields.number("top_p", 0, 1, sampling.top_p);
  sampling.top_k = fields.integer("top_k", 0, 1 << 24, sampling.top_k);
  sampling.min_p = fields.number("min_p", 0, 1, sampling.min_p);
  sampling.repetition_penalty =
      fields.number("repetition_penalty", 1e-3, 1e3, sampling.repetition_penalty);
  if (fields.find("seed")) {
    request.seed =
        static_cast<std::uint64_t>(fields.integer("seed", std::numeric_limits<std::int64_t>::min(),
                                                  std::numeric_limits<std::int64_t>::max(), 0));
  }
  request.stops = stops_in(fields);
  request.streams = fields.flag("stream", false);
  if (const Json* const options = fields.find("stream_options")) {
    LONGHAND_CHECK(options->is_object(), "stream_options: expected an object");
    request.streams_usage = Fields(*options).flag("include_usage", false);
  }
  return request;
}

}  // namespace longhand::app
