#include <filesystem>
#include <iostream>
#include <optional>

#include "apps/book/book.h"
#include "apps/command.h"
#include "apps/report.h"
#include "apps/terminal.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::app::book_command {
namespace {
namespace fs = std::filesystem;

/// The folder of the documents and code from which the book is made. This is the current folder if
/// it is a checkout of the repository, otherwise the copy that `cmake --install` places beside the
/// program.
fs::path find_source() {
  if (fs::exists("docs/math/README.md")) return ".";
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = program.parent_path().parent_path() / "share/longhand/source";
  if (!error && fs::exists(installed / "docs/math/README.md")) return installed;
  fail(
      "--source is missing: expected a checkout of longhand, because neither the current folder "
      "nor ",
      printable(installed.string()), " is a checkout");
}

/// The WebAssembly module that scripts/wasm.sh built in the checkout, or that `cmake --install`
/// placed beside the copy of the documents. Empty if there is none.
fs::path find_module(const fs::path& source) {
  for (const char* place : {"build/wasm", ".."}) {
    const fs::path file = source / place / "longhand.wasm.js";
    if (fs::exists(file)) return file;
  }
  return {};
}

void run(const Arguments& arguments) {
  if (!arguments.given("out")) wrong_usage("--out is missing: expected the folder for the book");
  book::BookOptions options{
      .source = arguments.given("source") ? fs::path(arguments.word("source")) : find_source(),
      .out = arguments.word("out"),
      .checks = !arguments.flag("no-checks"),
      .seed = static_cast<std::uint64_t>(arguments.integer("seed", 0, std::int64_t{1} << 53))};
  options.module =
      arguments.given("wasm") ? fs::path(arguments.word("wasm")) : find_module(options.source);
  std::optional<StatusLine> status;
  if (!arguments.json()) {
    status.emplace(std::cerr, status_columns());
    options.doing = [&](std::string_view line) { status->show(line); };
  }
  const book::BookFacts facts = book::write_book(options);
  status.reset();
  Report report({{"what", ""}, {"count", "count"}});
  report.add({{"what", "pages"}, {"count", facts.pages}});
  report.add({{"what", "formulas"}, {"count", facts.formulas}});
  report.add({{"what", "operations checked"}, {"count", facts.operations}});
  report.add({{"what", "source files"}, {"count", facts.sources}});
  report.set("seconds_of_checks", facts.seconds);
  report.set("index", (options.out / "index.html").string());
  report.print(std::cout, arguments.json());
  if (!arguments.json() && options.module.empty()) {
    std::cout << "the pages compute nothing without the module that scripts/wasm.sh builds\n";
  }
  if (!arguments.json()) {
    std::cout << "read it: " << printable((options.out / "index.html").string()) << '\n';
  }
}

const Register command{
    {.name = "book",
     .summary = "writes a web site about the formulas of all ops, and checks them on this machine",
     .usage = {"--out DIR [--source DIR] [--wasm FILE] [--no-checks]"},
     .options = {{"out", "DIR", "output folder; must be new or empty, or contain an earlier book"},
                 {"source", "DIR",
                  "checkout of longhand; default: the current folder if it is a checkout, "
                  "otherwise the installed copy"},
                 {"wasm", "FILE",
                  "WebAssembly module (longhand.wasm.js) for pages that compute in the "
                  "browser; default: the module that scripts/wasm.sh built in the checkout, "
                  "or the installed one"},
                 {"no-checks", "", "skip the checks; the command then takes about a second"},
                 {"seed", "N", "seed of the random numbers in the checks", "1"},
                 json_option()},
     .examples = {"book --out book"},
     .notes = "Open index.html in a browser. The pages need no network and no server. The\n"
              "checks take about a minute. They compare every derivative with difference\n"
              "quotients, and the kernels of every op with plain loops.",
     .run = run}};

}  // namespace
}  // namespace longhand::app::book_command
