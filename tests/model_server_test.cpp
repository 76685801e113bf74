// Tests the server of `longhand serve --model`: it returns the answers that the model has memorized
// and the same text as `longhand generate`, streams are well formed, and bad requests are refused
// in one line.
#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "apps/run/published_model.h"
#include "apps/serve/model_server.h"
#include "tasks/text_settings.h"
#include "tests/http_client.h"
#include "tests/memorized_answers.h"
#include "tests/program.h"

namespace model_server_test {

using namespace longhand;
using namespace longhand::app;

/// A model that has memorized three answers, and a server for it in this process.
struct Served : Program {
  Served() {
    train_on_animals(*this, "--task.separator '\\n'", 150, 4000);
    LoadedRun loaded = load_for_prompts(folder / "run", {.compute = {{"threads", "1"}}});
    tasks::ConversationFormat format =
        tasks::TextSettings(loaded.config.task_values()).format(loaded.task->vocabulary());
    model = std::make_unique<ModelServer>(
        std::move(loaded), std::move(format),
        ModelServer::Settings{.name = "animals", .token = "secret-key", .sampling = {}});
    server = std::make_unique<HttpServer>(
        "127.0.0.1", 0, [this](const HttpRequest& request) { return model->answer(request); },
        HttpLimits{.body_bytes = 10'000});
    thread = std::thread([this] { server->run([this] { return over.load(); }); });
  }
  ~Served() {
    over = true;
    thread.join();
    server.reset();
  }

  HttpAnswer post(const std::string& path, const Json& body,
                  const std::string& key = "secret-key") const {
    return post_text(path, body.dump(), key);
  }
  HttpAnswer post_text(const std::string& path, const std::string& body,
                       const std::string& key = "secret-key") const {
    return raw_request(server->port(),
                       text("POST ", path, " HTTP/1.1\r\nHost: localhost:", server->port(),
                            "\r\nConnection: close\r\n", "Authorization: Bearer ", key,
                            "\r\nContent-Type: application/json\r\n",
                            "Content-Length: ", body.size(), "\r\n\r\n", body));
  }
  Json complete(const Json& body) const { return answered("/v1/completions", body); }
  Json chat(const Json& body) const { return answered("/v1/chat/completions", body); }
  Json answered(const std::string& path, const Json& body) const {
    const HttpAnswer answer = post(path, body);
    BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return Json::parse(unchunked(answer)).value();
  }
  /// The body of a response, whose chunks are joined.
  static std::string unchunked(const HttpAnswer& answer) {
    BOOST_TEST(contains(answer.head, "Transfer-Encoding: chunked"));
    std::string body, rest = answer.body;
    for (;;) {
      const std::size_t end = rest.find("\r\n");
      BOOST_REQUIRE(end != std::string::npos);
      const auto size = static_cast<std::size_t>(std::strtoul(rest.c_str(), nullptr, 16));
      BOOST_REQUIRE(rest.size() >= end + 2 + size + 2);
      body += rest.substr(end + 2, size);
      rest.erase(0, end + 2 + size + 2);
      if (size == 0) break;
    }
    BOOST_TEST(rest == "");
    return body;
  }
  /// The events of a streamed response, of which the last must be [DONE].
  std::vector<Json> events(const std::string& path, const Json& body) const {
    const HttpAnswer answer = post(path, body);
    BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.body);
    BOOST_TEST(contains(answer.head, "Content-Type: text/event-stream"));
    std::string stream = unchunked(answer);
    std::vector<Json> all;
    for (std::size_t end; (end = stream.find("\n\n")) != std::string::npos;) {
      const std::string event = stream.substr(0, end);
      stream.erase(0, end + 2);
      BOOST_REQUIRE(event.starts_with("data: "));
      if (event == "data: [DONE]") break;
      all.push_back(Json::parse(event.substr(6)).value());
    }
    BOOST_TEST(stream == "");
    return all;
  }
  static Json user(const std::string& said) {
    return Json::Array{Json{{"role", "user"}, {"content", said}}};
  }

  std::unique_ptr<ModelServer> model;
  std::unique_ptr<HttpServer> server;
  std::atomic<bool> over = false;
  std::thread thread;
};

}  // namespace model_server_test

BOOST_FIXTURE_TEST_SUITE(model_server_test, Served)

using namespace model_server_test;

BOOST_AUTO_TEST_CASE(texts_equal_those_of_the_commands) {
  // The model has memorized these answers, so the server must return exactly them.
  for (const auto& [question, answer] : std::vector<std::pair<std::string, std::string>>{
           {"cat?", "meow"}, {"dog?", "woof woof"}, {"cow?", "moo"}}) {
    const Json said = chat({{"messages", user(question)}, {"model", "any"}});
    BOOST_TEST(said["object"].string() == "chat.completion");
    BOOST_TEST(said["model"].string() == "animals");
    const Json& choice = said["choices"][0];
    BOOST_TEST(choice["message"]["content"].string() == answer);
    BOOST_TEST(choice["message"]["role"].string() == "assistant");
    BOOST_TEST(choice["finish_reason"].string() == "stop");
    // Each byte is a token. The answer has one more token, the line break that ends it.
    BOOST_TEST(said["usage"]["prompt_tokens"].integer() == std::ssize(question));
    BOOST_TEST(said["usage"]["completion_tokens"].integer() == std::ssize(answer) + 1);
  }
  const Json generated = json("generate run --prompt do --tokens 5 --temperature 0 --json");
  const Json said = complete({{"prompt", "do"}, {"max_tokens", 5}});
  BOOST_TEST(said["object"].string() == "text_completion");
  BOOST_TEST(said["choices"][0]["text"].string() == generated["text"].string());
  BOOST_TEST(said["choices"][0]["finish_reason"].string() == "length");
  BOOST_TEST(said["usage"]["total_tokens"].integer() == 7);
  const Json tokens = Json::Array{Json('d'), Json('o')};
  BOOST_TEST(complete({{"prompt", tokens}, {"max_tokens", 5}})["choices"] == said["choices"]);
}

BOOST_AUTO_TEST_CASE(a_stop_text_ends_the_answer_before_it) {
  const Json all{{"prompt", "dog?"}, {"max_tokens", 20}};
  BOOST_TEST(complete(all)["choices"][0]["text"].string() == "woof woof");
  for (const Json& stop : {Json("f w"), Json(Json::Array{Json("xyz"), Json(" wo"), Json("f w")})}) {
    Json body = all;
    body["stop"] = stop;
    const Json said = complete(body);
    BOOST_TEST(said["choices"][0]["text"].string() == "woo");
    BOOST_TEST(said["choices"][0]["finish_reason"].string() == "stop");
  }
}

BOOST_AUTO_TEST_CASE(the_parts_of_a_stream_join_to_the_whole_text) {
  std::string joined;
  const std::vector<Json> parts =
      events("/v1/chat/completions", {{"messages", user("dog?")},
                                      {"stream", true},
                                      {"stream_options", {{"include_usage", true}}}});
  BOOST_REQUIRE(parts.size() > 4);
  BOOST_TEST(parts[0]["choices"][0]["delta"]["role"].string() == "assistant");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    BOOST_TEST(parts[i]["object"].string() == "chat.completion.chunk");
    BOOST_TEST(parts[i]["id"].string() == parts[0]["id"].string());
    const bool counts = i + 1 == parts.size();
    BOOST_REQUIRE(parts[i]["choices"].empty() == counts);
    BOOST_TEST(parts[i]["usage"].is_null() == !counts);
    if (counts) break;
    const Json& choice = parts[i]["choices"][0];
    if (const Json* const content = choice["delta"].find("content")) joined += content->string();
    BOOST_TEST(choice["finish_reason"].is_null() == (i + 2 < parts.size()));
  }
  BOOST_TEST(joined == "woof woof");
  BOOST_TEST(parts.back()["usage"]["completion_tokens"].integer() == 10);

  // The answer ends with "f woof", the beginning of the stop text "f woofer". The server delays
  // these letters until the answer is complete, and then must send them.
  joined.clear();
  for (const Json& part :
       events("/v1/completions", {{"prompt", "dog?"}, {"stop", "f woofer"}, {"stream", true}})) {
    joined += part["choices"][0]["text"].string();
  }
  BOOST_TEST(joined == "woof woof");
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_text) {
  const auto said = [&](int seed) {
    const Json json =
        complete({{"prompt", "c"}, {"max_tokens", 40}, {"temperature", 5}, {"seed", seed}});
    return json["choices"][0]["text"].string();
  };
  const std::string one = said(1);
  BOOST_TEST(said(1) == one);
  BOOST_TEST(said(2) != one);
}

BOOST_AUTO_TEST_CASE(requests_without_the_key_are_refused) {
  const Json body{{"prompt", "cat?"}};
  for (const std::string key : {"", "secret-kez", "secret-ke", "secret-key0"}) {
    const HttpAnswer answer = post("/v1/completions", body, key);
    BOOST_TEST(answer.status == 401);
    BOOST_TEST(contains(answer.json()["error"]["message"].string(), "API key"));
  }
  // The Host header names another machine and must be refused. Otherwise a web page of example.org
  // could access this server by making example.org resolve to this machine's address.
  const HttpAnswer foreign = raw_request(
      server->port(), "GET /v1/models HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n");
  BOOST_TEST(foreign.status == 403);
  const HttpAnswer list = http_request(server->port(), "GET", "/v1/models");
  BOOST_TEST(list.json()["data"][0]["id"].string() == "animals");
}

BOOST_AUTO_TEST_CASE(bad_requests_are_refused_in_one_line) {
  const auto refused = [&](const std::string& path, const std::string& body,
                           const std::string& message) {
    const HttpAnswer answer = post_text(path, body);
    BOOST_TEST_CONTEXT(body << " says: " << answer.body) {
      BOOST_TEST(answer.status == 400);
      const std::string said = answer.json()["error"]["message"].string();
      BOOST_TEST(contains(said, message));
      BOOST_TEST(!contains(said, "\n"));
      BOOST_TEST(said.size() < 200);
    }
  };
  const std::string path = "/v1/completions", chats = "/v1/chat/completions";
  for (const char* body : {"", "[]", "{", "\"cat\"", "{\"prompt\": \"cat?\"} {}"}) {
    refused(path, body, "expected a JSON object");
  }
  refused(path, "{}", "prompt: expected a text or a list of tokens, got no prompt");
  for (const char* prompt : {"1", "{}", "[\"a\", \"b\"]", "[-1]", "[1.5]", "[[\"a\"]]"}) {
    refused(path, text("{\"prompt\": ", prompt, "}"), "prompt: expected one text or one list");
  }
  refused(path, R"({"prompt": ""})", "prompt: expected at least one token");
  refused(path, R"({"prompt": [256]})", "prompt: expected token ids below 256, got 256");
  refused(path, text("{\"prompt\": \"", std::string(4000, 'x'), "\"}"),
          "the prompt is too long: expected at most 3999 tokens, got 4000");
  for (const auto& [field, message] : std::vector<std::pair<std::string, std::string>>{
           {R"("max_tokens": 0)", "max_tokens: expected an integer from 1 to"},
           {R"("max_tokens": 1e30)", "max_tokens: expected an integer from 1 to"},
           {R"("temperature": -1)", "temperature: expected a number from 0 to 1000, got -1"},
           {R"("temperature": "hot")", "temperature: expected a number"},
           {R"("top_p": 2)", "top_p: expected a number from 0 to 1, got 2"},
           {R"("seed": 0.5)", "seed: expected an integer"},
           {R"("stop": 3)", "stop: expected a text or a list"},
           {R"("stop": [""])", "stop: expected texts of 1 to 1000 bytes"},
           {R"("stream": "yes")", "stream: expected true or false, got \"yes\""},
           {R"("stream_options": 1)", "stream_options: expected an object"},
           {R"("n": 2)", "n: this server supports only 1, got 2"},
           {R"("logprobs": 5)", "logprobs: this server does not support this field"},
           {R"("tools": [{}])", "tools: this server does not support this field"},
           {R"("response_format": {"type": "json_object"})", "response_format: this server"}}) {
    refused(path, text("{\"prompt\": \"cat?\", ", field, "}"), message);
  }
  // Some programs send fields with values that have no effect, such as null, false or an empty
  // list. Such fields are accepted, even if the server does not support any other value.
  BOOST_TEST(post_text(path, R"({"prompt": "cat?", "n": 1, "logprobs": null, "echo": false,
      "tools": [], "stop": null, "user": "x", "response_format": {"type": "text"}})")
                 .status == 200);
  refused(chats, R"({"messages": []})", "messages: expected a list of at least one message");
  refused(chats, R"({"messages": [1]})", "messages: expected objects");
  refused(chats, R"({"messages": [{"role": "user"}]})", "messages: expected objects");
  refused(chats, R"({"messages": [{"role": "cat", "content": "x"}]})",
          "messages: expected the role system, developer, user or assistant, got \"cat\"");
  refused(chats, R"({"messages": [{"role": "assistant", "content": "x"}]})",
          "messages: expected the role user in the last message");
  refused(chats, R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
          "messages: expected only parts of the type \"text\"");
  BOOST_TEST(post_text(path, std::string(20'000, ' ')).status == 413);
  BOOST_TEST(post_text("/v1/embeddings", "{}").status == 404);
}

BOOST_AUTO_TEST_CASE(many_requests_at_once_are_all_answered) {
  std::vector<std::future<HttpAnswer>> answers;
  for (int i = 0; i < 40; ++i) {
    answers.push_back(std::async(std::launch::async, [this] {
      return post("/v1/completions", {{"prompt", "cat?"}, {"stream", false}});
    }));
  }
  int completed = 0;
  for (std::future<HttpAnswer>& waiting : answers) {
    const HttpAnswer answer = waiting.get();
    BOOST_TEST((answer.status == 200 || answer.status == 503), answer.status);
    completed += answer.status == 200;
    if (answer.status == 200) {
      BOOST_TEST(contains(unchunked(answer), "\"text\":\"meow\""));
    }
  }
  BOOST_TEST(completed >= static_cast<int>(ModelServer::most_waiting));
}

BOOST_AUTO_TEST_CASE(a_client_that_disconnects_ends_its_generation) {
  // Without a stop, this generation has thousands of tokens, which would take many seconds.
  const std::string body =
      R"({"prompt": "cat?", "max_tokens": 3900, "stream": true, "temperature": 900, "seed": 4})";
  for (int i = 0; i < 3; ++i) {
    const FileDescriptor client = connect_to(server->port());
    send_all(client, text("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: "
                          "Bearer secret-key\r\nContent-Length: ",
                          body.size(), "\r\n\r\n", body));
    char byte = 0;
    BOOST_TEST(::recv(client.get(), &byte, 1, 0) == 1);  // the stream has begun
  }
  const auto begun = std::chrono::steady_clock::now();
  BOOST_TEST(complete({{"prompt", "cat?"}})["choices"][0]["text"].string() == "meow");
  BOOST_TEST((std::chrono::steady_clock::now() - begun < std::chrono::seconds(5)));
}

BOOST_AUTO_TEST_CASE(clients_of_http_1_0_receive_the_text_without_chunks) {
  const std::string body = R"({"prompt": "cow?"})";
  const HttpAnswer answer = raw_request(
      server->port(), text("POST /v1/completions HTTP/1.0\r\nHost: localhost\r\nX-Longhand-Token: ",
                           "secret-key\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(!contains(answer.head, "chunked"));
  BOOST_TEST(answer.json()["choices"][0]["text"].string() == "moo");
}

BOOST_AUTO_TEST_CASE(the_command_prints_its_addresses_and_refuses_wrong_flags) {
  refuses(2, "serve --model run --token short", "--token: expected at least 8 letters");
  refuses(2, "serve --temperature 0", "--temperature needs --model");
  refuses(2, "serve runs --model run", "--model and FOLDER cannot be combined");
  refuses(1, "serve --model nowhere", "nowhere");
  const std::string line = text("cd ", folder.path().string(), " && ", std::string(built_program),
                                " serve --model run --port 0 --token known-key >address & echo $!");
  FILE* const shell = ::popen(line.c_str(), "r");
  int process = 0;
  BOOST_REQUIRE(std::fscanf(shell, "%d", &process) == 1);
  ::pclose(shell);
  std::string said;
  for (int tries = 0; tries < 1000 && !said.ends_with("known-key\n"); ++tries, ::usleep(10'000)) {
    said = contents(path("address"));
  }
  const std::size_t colon = said.find("127.0.0.1:");
  BOOST_REQUIRE(colon != std::string::npos);
  const auto port = static_cast<std::uint16_t>(std::atoi(said.c_str() + colon + 10));
  BOOST_TEST(said == text("page:    http://127.0.0.1:", port,
                          "/#known-key\nAPI:     http://127.0.0.1:", port,
                          "/v1\nAPI key: known-key\n"));
  BOOST_TEST(contains(http_request(port, "GET", "/").body, "/chat.js"));
  for (const char* file : {"/chat.js", "/style.css"}) {
    BOOST_TEST(http_request(port, "GET", file).status == 200);
  }
  ::kill(process, SIGTERM);
}

BOOST_AUTO_TEST_SUITE_END()
