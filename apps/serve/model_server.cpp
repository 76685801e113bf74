#include "apps/serve/model_server.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "apps/serve/chat_page.h"
#include "apps/serve/page_files.h"
#include "apps/serve/token.h"
#include "core/error.h"

namespace longhand::app {
namespace {

HttpResponse json_response(const Json& value, int status = 200) {
  return {.status = status, .type = "application/json", .body = value.dump() + "\n"};
}

/// An error in the form of OpenAI's interface.
Json error_json(std::string_view type, std::string_view message) {
  return {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}};
}

HttpResponse refusal_response(int status, std::string_view type, std::string_view message) {
  return json_response(error_json(type, message), status);
}

}  // namespace

/// A request that waits for its completion or is being computed.
struct ModelServer::Job {
  CompletionRequest request;
  std::vector<std::int32_t> prompt;
  Ends ends;
  /// Maximum number of new tokens: the limit of the request, or less if the context of the model
  /// has no room for so many.
  std::int64_t most = 0;
  std::uint64_t seed = 0;
  std::string id;
  std::int64_t created = 0;  // seconds since 1970
  std::string model;
  std::shared_ptr<HttpStream> out = std::make_shared<HttpStream>();

  Json frame(bool is_part) const {
    const char* const chat = is_part ? "chat.completion.chunk" : "chat.completion";
    return {{"id", id},
            {"object", request.is_chat ? chat : "text_completion"},
            {"created", created},
            {"model", model}};
  }
  Json choice(Json content, const char* finish) const {
    Json choice{{"index", 0}, {"logprobs", nullptr}};
    choice["finish_reason"] = finish ? Json(finish) : Json();
    for (const auto& [name, value] : content.members()) choice[name] = value;
    return choice;
  }
  Json usage(std::size_t tokens) const {
    return {{"prompt_tokens", prompt.size()},
            {"completion_tokens", tokens},
            {"total_tokens", prompt.size() + tokens}};
  }
  void send_event(const Json& json) const { out->write("data: " + json.dump() + "\n\n"); }
  /// Sends a part of a streamed text. `finish` is null except in the last part.
  void send_part(std::string_view text, const char* finish, bool is_first = false) const {
    Json content = Json::object();
    if (!request.is_chat) {
      content["text"] = text;
    } else {
      Json delta = Json::object();
      if (is_first) delta["role"] = "assistant";
      if (is_first || !text.empty()) delta["content"] = text;
      content["delta"] = delta;
    }
    Json event = frame(true);
    event["choices"] = Json::Array{choice(content, finish)};
    if (request.streams_usage) event["usage"] = nullptr;
    send_event(event);
  }
  void finish(const Continuation& said, std::string_view rest, const char* reason) const {
    const std::size_t tokens = said.choices().size();
    if (!request.streams) {
      Json whole = frame(false);
      const Json content =
          request.is_chat ? Json{{"message", {{"role", "assistant"}, {"content", said.text()}}}}
                          : Json{{"text", said.text()}};
      whole["choices"] = Json::Array{choice(content, reason)};
      whole["usage"] = usage(tokens);
      out->write(whole.dump() + "\n");
      return;
    }
    if (!rest.empty()) send_part(rest, nullptr);
    send_part("", reason);
    if (request.streams_usage) {
      Json event = frame(true);
      event["choices"] = Json::array();
      event["usage"] = usage(tokens);
      send_event(event);
    }
    out->write("data: [DONE]\n\n");
  }
};

ModelServer::ModelServer(LoadedRun loaded, std::optional<tasks::ConversationFormat> format,
                         Settings settings)
    : loaded_(std::move(loaded)),
      format_(std::move(format)),
      settings_(std::move(settings)),
      worker_([this] { work(); }) {}

ModelServer::~ModelServer() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

HttpResponse ModelServer::answer(const HttpRequest& request) {
  if (request.method == "GET") {
    if (request.path == "/") {
      return {.type = "text/html; charset=utf-8", .body = std::string(chat_html)};
    }
    if (request.path == "/chat.js") {
      return {.type = "text/javascript; charset=utf-8", .body = std::string(chat_script)};
    }
    if (request.path == "/style.css") {
      const auto file = std::ranges::find(page_files(), request.path, &PageFile::path);
      return {.type = std::string(file->type), .body = std::string(file->text)};
    }
    if (request.path == "/v1/models") {
      const Json model{{"id", settings_.name},
                       {"object", "model"},
                       {"created", 0},
                       {"owned_by", "longhand"},
                       {"context", loaded_.model->config().longest},
                       {"chat", format_.has_value()}};
      return json_response({{"object", "list"}, {"data", Json(Json::Array{model})}});
    }
  } else {
    if (!is_token(request, settings_.token)) {
      return refusal_response(401, "authentication_error",
                              "expected the token that `longhand serve` printed, as the API key");
    }
    if (request.path == "/v1/completions") return accept(request, false);
    if (request.path == "/v1/chat/completions") return accept(request, true);
  }
  return refusal_response(404, "invalid_request_error", "there is no such address");
}

HttpResponse ModelServer::accept(const HttpRequest& request, bool is_chat) {
  std::unique_ptr<Job> job;
  try {
    LONGHAND_CHECK(!is_chat || format_,
                   "this model continues prompts (/v1/completions), but has no "
                   "format for conversations");
    job = job_for(read_completion_request(
        request.body,
        {.is_chat = is_chat, .most = settings_.most, .sampling = settings_.sampling}));
  } catch (const Error& error) {
    return refusal_response(400, "invalid_request_error", error.what());
  }
  HttpResponse response{
      .type = job->request.streams ? "text/event-stream; charset=utf-8" : "application/json",
      .stream = job->out};
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= most_waiting) {
      return refusal_response(503, "server_error", "too many requests are waiting");
    }
    waiting_.push_back(std::move(job));
  }
  changed_.notify_all();
  return response;
}

std::unique_ptr<ModelServer::Job> ModelServer::job_for(CompletionRequest request) {
  auto job = std::make_unique<Job>();
  const tasks::Vocabulary& vocabulary = loaded_.task->vocabulary();
  if (request.is_chat) {
    job->prompt = format_->prompt(request.messages);
    job->ends = ends_of(*loaded_.task, format_->end());
  } else {
    job->prompt =
        request.prompt_tokens.empty() ? vocabulary.encode(request.prompt) : request.prompt_tokens;
    for (const std::int32_t token : job->prompt) {
      LONGHAND_CHECK(token < vocabulary.size(), "prompt: expected token ids below ",
                     vocabulary.size(), ", got ", token);
    }
    job->ends = ends_of(*loaded_.task, end_of_text(loaded_.config, vocabulary));
  }
  const std::int64_t context = loaded_.model->config().longest, size = std::ssize(job->prompt);
  LONGHAND_CHECK(size > 0, "prompt: expected at least one token");
  LONGHAND_CHECK(size < context, "the prompt is too long: expected at most ", context - 1,
                 " tokens, got ", size);
  for (const std::string& stop : request.stops) job->ends.texts.push_back(stop);
  job->most = std::min(request.most, context - size);
  job->seed = request.seed.value_or(settings_.seed + accepted_);
  ++accepted_;
  job->id = text(request.is_chat ? "chatcmpl-" : "cmpl-", accepted_);
  job->created = static_cast<std::int64_t>(std::time(nullptr));
  job->model = settings_.name;
  job->request = std::move(request);
  return job;
}

void ModelServer::work() {
  for (;;) {
    std::unique_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return over_ || !waiting_.empty(); });
      if (over_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (!job->out->is_cancelled()) run(*job);
    job->out->end();
  }
}

void ModelServer::run(Job& job) {
  Continuation said(loaded_.task->vocabulary(), job.prompt, job.ends);
  nn::GenerateOptions options{.most = job.most,
                              .stops = job.ends.tokens,
                              .sampling = job.request.sampling,
                              .seed = job.seed};
  options.positions = given_positions(*loaded_.model, *loaded_.task, job.seed);
  const char* reason = "length";
  bool is_first = true;
  options.said = [&](std::size_t, const nn::Choice& choice) {
    const bool ends = said.add(choice);
    if (ends) reason = "stop";
    if (job.request.streams) {
      const std::string_view piece = said.fresh(ends);
      if (is_first || !piece.empty()) job.send_part(piece, nullptr, is_first);
      is_first = false;
    }
    return !ends && !job.out->is_cancelled() && !over_;
  };
  try {
    nn::generate(*loaded_.model, {&job.prompt, 1}, options);
    job.finish(said, said.fresh(true), reason);
  } catch (const std::exception& error) {
    const Json json = error_json("server_error", error.what());
    if (job.request.streams) return job.send_event(json);
    job.out->set_status(500);
    job.out->write(json.dump() + "\n");
  }
}

}  // namespace longhand::app
