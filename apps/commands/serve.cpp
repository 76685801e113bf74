#include <iostream>

#include "apps/command.h"
#include "apps/compute.h"
#include "apps/run/published_model.h"
#include "apps/serve/live_page.h"
#include "apps/serve/model_server.h"
#include "apps/serve/token.h"
#include "nn/training/stop_signals.h"

namespace longhand::app::serve_command {
namespace {

// Maximum size in bytes of the body of a request to a model.
constexpr std::uint64_t largest_request = 4u << 20;

/// Listens on the address of the flags, calls `print` with the server's address, and responds until
/// the process receives a stop signal.
template <class Print>
void listen(const Arguments& arguments, const HttpServer::Handler& handler, HttpLimits limits,
            Print print) {
  const std::string& address = arguments.word("address");
  const auto port = static_cast<std::uint16_t>(arguments.integer("port", 0, 65535));
  HttpServer server(address, port, handler, limits);
  const std::string host = address.find(':') == std::string::npos ? address : "[" + address + "]";
  print(text("http://", host, ':', server.port()));
  server.run([] { return nn::StopSignals::raised() != 0; });
}

/// The options that only --model uses.
std::vector<CliFlag> model_options() {
  return join(
      {template_option(),
       {"tokens", "N", "maximum number of new tokens if a request has no max_tokens", "512"}},
      join(run_options(), sampling_options()));
}

void serve_runs(const Arguments& arguments, const std::string& token) {
  for (const CliFlag& flag : model_options()) {
    if (arguments.given(flag.name)) wrong_usage(shown_flag(flag.name), " needs --model");
  }
  std::vector<std::filesystem::path> folders(arguments.plain().begin(), arguments.plain().end());
  if (folders.empty()) folders.emplace_back("runs");
  for (const std::filesystem::path& folder : folders) {
    LONGHAND_CHECK(std::filesystem::is_directory(folder), folder.string(), ": expected a folder");
  }
  LivePage page(folders, token);
  listen(
      arguments, [&](const HttpRequest& request) { return page.answer(request); }, {},
      [&](const std::string& address) { std::cout << address << "/#" << token << std::endl; });
}

void serve_model(const Arguments& arguments, const std::string& token) {
  if (!arguments.plain().empty()) wrong_usage("--model and FOLDER cannot be combined");
  const std::filesystem::path path = arguments.word("model");
  ModelServer::Settings settings{.name = path.lexically_normal().filename().string(),
                                 .token = token,
                                 .sampling = sampling_from(arguments),
                                 .most = arguments.integer("tokens", 1, 1 << 24),
                                 .seed = seed_from(arguments)};
  LoadedRun loaded = load_for_prompts(path, load_options(arguments));
  LONGHAND_CHECK(loaded.task->outputs().says_next, path.string(), ": the run's task ",
                 loaded.config.kind().name, " does not predict the next token");
  const bool is_text = loaded.config.kind().name == "text";
  if (is_text && !arguments.given("temperature")) settings.sampling.temperature = text_temperature;
  std::optional<tasks::ConversationFormat> format;
  if (is_text || arguments.given("template"))
    format.emplace(conversation_format(loaded, arguments));
  ModelServer server(std::move(loaded), std::move(format), std::move(settings));
  listen(
      arguments, [&](const HttpRequest& request) { return server.answer(request); },
      {.body_bytes = largest_request},
      [&](const std::string& address) {
        std::cout << "page:    " << address << "/#" << token << "\n"
                  << "API:     " << address << "/v1\nAPI key: " << token << std::endl;
      });
}

void run(const Arguments& arguments) {
  const nn::StopSignals signals;
  const std::string token = arguments.given("token") ? arguments.word("token") : make_token();
  if (token.size() < 8 || token.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz"
                                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != token.npos) {
    wrong_usage("--token: expected at least 8 letters, digits, - or _");
  }
  arguments.given("model") ? serve_model(arguments, token) : serve_runs(arguments, token);
}

const Register command{
    {.name = "serve",
     .summary = "shows the progress of runs in a browser, or serves a model over HTTP",
     .usage = {"[FOLDER]... [--port N] [--address ADDRESS]",
               "--model RUN|DIR|FILE.gguf [--port N] [--template NAME] [--tokens N]"},
     .options =
         join({{"port", "N", "port to listen on; 0: any free port", "8765"},
               {"address", "ADDRESS",
                "IP address to listen on; 0.0.0.0: all addresses of this machine", "127.0.0.1"},
               {"token", "WORD",
                "password of --model, or for stopping and resuming runs; default: random"},
               {"model", "PATH", "serve this run or published model, instead of a page of runs"}},
              model_options()),
     .examples = {"serve", "serve runs/fal-table1-smoke --port 0", "serve --model runs/smol"},
     .notes =
         "Without --model, the command serves a page with the runs in FOLDER, by default\n"
         "runs/. The printed address ends with a token. With the token you can stop and resume\n"
         "runs on this machine; without it the page is read-only. Runs that you resume on the\n"
         "page continue after the server ends.\n"
         "--model serves a chat page and an API that is compatible with OpenAI's: /v1/models,\n"
         "/v1/completions and /v1/chat/completions, with or without streaming. The options\n"
         "listed after --model require it. A request can override --tokens and the sampling\n"
         "options.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::serve_command
