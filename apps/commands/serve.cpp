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
     .summary = "shows runs in a browser as they train",
     .usage = {"[FOLDER]... [--port N] [--address ADDRESS]"},
     .options = {{"port", "N", "where it listens; 0: any free port", "8765"},
                 {"address", "ADDRESS", "of this machine, in numbers; 0.0.0.0: all of them",
                  "127.0.0.1"}},
     .examples = {"serve", "serve runs/fal-table1-smoke --port 0"},
     .notes = "Without a folder, the runs below runs/. Who opens the printed address, token and\n"
              "all, may also stop and resume runs of this machine; without its last part one only\n"
              "looks. Runs that were resumed here go on when the server ends.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::serve_command
