// Fuzz target: parses any bytes as a Markdown page of docs/, and as the HTML of a report, which is
// converted to Markdown. They are refused, or every heading of the page has a valid level.
#include "apps/book/markdown_page.h"
#include "apps/html/markdown.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view markdown(reinterpret_cast<const char*>(data), size);
  done_or_refused(
      [&] {
        const app::book::MarkdownPage page =
            app::book::markdown_page(markdown, [](const std::string& link) { return link; });
        for (const auto& heading : page.headings) {
          require(heading.level >= 2 && heading.level <= 6, "a heading has a level");
        }
      },
      "");
  const auto file = [](std::size_t place) { return std::to_string(place); };
  done_or_refused([&] { app::html::markdown(markdown, {.picture = file, .listing = file}); },
                  "report: ");
  for (const char* kind : {"example", "exercise", ""}) app::book::blocks_of(markdown, kind);
  return 0;
}
