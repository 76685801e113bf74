// Any bytes are read as a page of docs/, and as the HTML of a report that is converted to Markdown.
// They are refused, or give a page with its headings.
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
                  "a report's ");
  for (const char* kind : {"example", "exercise", ""}) app::book::blocks_of(markdown, kind);
  return 0;
}
