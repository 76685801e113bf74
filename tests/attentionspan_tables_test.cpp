#include <cmath>
#include <filesystem>
#include <map>
#include "tests/check.h"

#include "apps/recipes/recipe.h"
#include "core/error.h"
#include "tests/temporary_folder.h"

using namespace longhand;
using namespace longhand::app;

BOOST_AUTO_TEST_SUITE(attentionspan_tables_test)

// Tables 3 and 4 from their runs to their rows, with models that learn nothing.
BOOST_AUTO_TEST_CASE(attention_is_measured_in_distribution_and_out_of_it) {
  const TemporaryFolder folder;
  std::map<std::string, RecipeResult> results;
  for (const std::string table : {"table3", "table4"}) {
    RecipeOptions options{.out = folder / ("attentionspan-" + table + "-smoke")};
    options.manner.quiet = true;
    options.settings = {{"model.width", "16"},
                        {"model.inner", "16"},
                        {"model.layers", "1"},
                        {"training.steps", "2"},
                        {"training.warm_up", "1"},
                        {"training.batch", "2"},
                        {"training.checkpoint_every", "0"},
                        {"training.evaluate_every", "1"},
                        {"training.evaluate_samples", "2"},
                        {"compute.threads", "1"}};
    results[table] = recipes().at("attentionspan/" + table).run(options);
    BOOST_TEST(!results[table].stopped);
    BOOST_TEST(results[table].sections.size() >= 3u);
    for (const Row& row : results[table].rows) {
      BOOST_TEST(std::isfinite(row.value));
      if (row.low) BOOST_TEST(*row.low <= row.value);
      if (row.high) BOOST_TEST(*row.high >= row.value);
    }
  }
  const auto row_of = [&](const std::string& table, const std::string& name,
                          const std::string& column) -> const Row& {
    for (const Row& row : results[table].rows) {
      if (row.row == name && row.column == column) return row;
    }
    throw Error("no row " + name + ", " + column);
  };
  for (const std::string name :
       {"String Reversal", "Value Assignment", "Long Addition", "FFML", "Successor"}) {
    for (const std::string where : {", ID", ", OOD"}) {
      const Row& score = row_of("table3", name + where, "AttnScore, %");
      BOOST_TEST(score.value > 0);
      BOOST_TEST(score.value < 100);
      BOOST_TEST(row_of("table3", name + where, "tokens wrong").value > 0);
      const double mean = row_of("table4", name + where, "Mean entropy").value;
      BOOST_TEST(row_of("table4", name + where, "Min").value <= mean);
      BOOST_TEST(row_of("table4", name + where, "Max").value >= mean);
      BOOST_TEST(row_of("table4", name + where, "Max").value > 0);
    }
  }
  BOOST_TEST(row_of("table3", "String Reversal, OOD", "wrong, %").paper.value() == 2.36);
  BOOST_TEST(!row_of("table3", "String Reversal, ID", "wrong, %").paper);
  BOOST_TEST(row_of("table4", "Long Addition, OOD", "Mean entropy").paper.value() == 1.90);
  // Longer samples spread a row over more keys.
  BOOST_TEST(row_of("table4", "String Reversal, OOD", "Mean entropy").value >
             row_of("table4", "String Reversal, ID", "Mean entropy").value);
  // The second table has the first one's runs.
  BOOST_TEST(
      std::filesystem::exists(folder / "attentionspan-table3-smoke" / "scratch-ffml-seed-1"));
  BOOST_TEST(
      !std::filesystem::exists(folder / "attentionspan-table4-smoke" / "scratch-ffml-seed-1"));
}

BOOST_AUTO_TEST_SUITE_END()
