#include <iostream>

#include "apps/command.h"
#include "apps/serve/live_page.h"
#include "nn/training/stop_signals.h"

namespace longhand::app::serve_command {
namespace {

void run(const Arguments& arguments) {
  std::vector<std::filesystem::path> folders(arguments.plain().begin(), arguments.plain().end());
  if (folders.empty()) folders.emplace_back("runs");
  for (const std::filesystem::path& folder : folders) {
    LONGHAND_CHECK(std::filesystem::is_directory(folder), folder.string(), ": expected a folder");
  }
  const nn::StopSignals signals;
  const std::string& address = arguments.word("address");
  const auto port = static_cast<std::uint16_t>(arguments.integer("port", 0, 65535));
  const std::string token = make_token();
  LivePage page(folders, token);
  HttpServer server(address, port,
                    [&](const HttpRequest& request) { return page.answer(request); });
  const std::string host = address.find(':') == std::string::npos ? address : "[" + address + "]";
  std::cout << "http://" << host << ':' << server.port() << "/#" << token << std::endl;
  server.run([] { return nn::StopSignals::raised() != 0; });
}

const Register command{
    {.name = "serve",
     .summary = "shows the progress of runs in a browser",
     .usage = {"[FOLDER]... [--port N] [--address ADDRESS]"},
     .options = {{"port", "N", "port to listen on; 0: any free port", "8765"},
                 {"address", "ADDRESS",
                  "numeric address to listen on; 0.0.0.0: all addresses of this machine",
                  "127.0.0.1"}},
     .examples = {"serve", "serve runs/fal-table1-smoke --port 0"},
     .notes =
         "FOLDER defaults to runs/. The printed address ends with a token. With the token you\n"
         "can stop and resume runs on this machine; without it the page is read-only. Runs\n"
         "that were resumed here continue when the server ends.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::serve_command
