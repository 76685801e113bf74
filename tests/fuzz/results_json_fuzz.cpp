// Fuzz target: reads any bytes as the JSON of a page of results. They are refused, or the tables on
// the page have as many cells in every row as in the header.
#include <algorithm>

#include "apps/recipes/results_page.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/scratch_file.h"

using namespace longhand;
using namespace longhand::fuzz;

namespace {

void check(std::string_view table) {
  const auto bars = [](std::string_view line) {
    std::ptrdiff_t count = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      count += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    }
    return count;
  };
  std::ptrdiff_t expected = -1;
  while (!table.empty()) {
    const std::size_t end = table.find('\n');
    require(end != table.npos, "every line of a table ends");
    const std::string_view line = table.substr(0, end);
    if (expected < 0) expected = bars(line);
    require(bars(line) == expected, "every line of a table has as many cells");
    table.remove_prefix(end + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFolder folder;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto file = folder.write("page.json", input);
  std::map<std::string, Json> results;
  if (!done_or_refused([&] { results = app::results_in(folder.path()); }, file.string())) return 0;
  const Json& page = results.begin()->second;
  done_or_refused([&] { check(app::figures_table(page)); }, "JSON: expected ");
  done_or_refused([&] { check(app::index_table(results)); }, "JSON: expected ");
  done_or_refused([&] { check(app::paper_table(results, "results/")); }, "JSON: expected ");
  done_or_refused([&] { app::with_figures_table("a\n|  |  | ours |\n| 1 | 2 | 3 |\nb\n", page); },
                  "JSON: expected ");
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t room, unsigned seed) {
  return mutate_json_input(data, size, room, seed);
}
