#include <cmath>
#include <filesystem>
#include <map>
#include "tests/check.h"

#include "apps/recipes/recipe.h"
#include "core/error.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(attentionspan_tables_test)

using namespace longhand;
using namespace longhand::app;

namespace {

RecipeOptions tiny(const std::filesystem::path& out) {
  RecipeOptions options{.out = out};
  options.control.quiet = true;
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
  return options;
}

const Row& row_of(const RecipeResult& result, const std::string& name, const std::string& column) {
  for (const Row& row : result.rows) {
    if (row.row == name && row.column == column) return row;
  }
  throw Error("no row " + name + ", " + column);
}

}  // namespace

// Runs the recipes of Tables 3 and 4, from the training of the models to the rows of results. The
// models are trained too briefly to learn.
BOOST_AUTO_TEST_CASE(attention_is_measured_in_and_out_of_distribution) {
  const TemporaryFolder folder;
  std::map<std::string, RecipeResult> results;
  for (const std::string table : {"table3", "table4"}) {
    const RecipeOptions options = tiny(folder / ("attentionspan-" + table + "-smoke"));
    results[table] = recipes().at("attentionspan/" + table).run(options);
    BOOST_TEST(!results[table].stopped);
    BOOST_TEST(results[table].sections.size() >= 2u);
    BOOST_TEST(!results[table].runs.empty());
    for (const Row& row : results[table].rows) {
      BOOST_TEST(std::isfinite(row.value));
      if (row.low) BOOST_TEST(*row.low <= row.value);
      if (row.high) BOOST_TEST(*row.high >= row.value);
    }
  }
  for (const std::string name :
       {"String Reversal", "Value Assignment", "Long Addition", "FFML", "Successor"}) {
    for (const std::string where : {", ID", ", OOD"}) {
      const Row& score = row_of(results["table3"], name + where, "AttnScore, %");
      BOOST_TEST(score.value > 0);
      BOOST_TEST(score.value < 100);
      BOOST_TEST(row_of(results["table3"], name + where, "tokens wrong").value > 0);
      const double mean = row_of(results["table4"], name + where, "Mean entropy").value;
      BOOST_TEST(row_of(results["table4"], name + where, "Min").value <= mean);
      BOOST_TEST(row_of(results["table4"], name + where, "Max").value >= mean);
      BOOST_TEST(row_of(results["table4"], name + where, "Max").value > 0);
    }
  }
  BOOST_TEST(row_of(results["table3"], "String Reversal, OOD", "wrong, %").paper.value() == 2.36);
  BOOST_TEST(!row_of(results["table3"], "String Reversal, ID", "wrong, %").paper);
  BOOST_TEST(row_of(results["table4"], "Long Addition, OOD", "Mean entropy").paper.value() == 1.90);
  // In longer samples, attention is spread over more keys, so its entropy is higher.
  BOOST_TEST(row_of(results["table4"], "String Reversal, OOD", "Mean entropy").value >
             row_of(results["table4"], "String Reversal, ID", "Mean entropy").value);
  // Table 4 reuses the runs of Table 3.
  BOOST_TEST(
      std::filesystem::exists(folder / "attentionspan-table3-smoke" / "scratch-ffml-seed-1"));
  BOOST_TEST(
      !std::filesystem::exists(folder / "attentionspan-table4-smoke" / "scratch-ffml-seed-1"));
}

// Table 5 contains a model and its repaired version, in which the last column of every head's query
// and key projection was trained further. Each is measured with its own weights.
BOOST_AUTO_TEST_CASE(a_repaired_model_is_measured_beside_the_original) {
  const TemporaryFolder folder;
  RecipeOptions options = tiny(folder / "attentionspan-table5-smoke");
  const auto table5 = [&] { return recipes().at("attentionspan/table5").run(options); };
  options.settings["training.rate"] = "0";
  const RecipeResult still = table5();
  BOOST_TEST(still.rows.size() == 18u);
  BOOST_TEST(row_of(still, "Long Addition, OOD, base", "Mean entropy").value ==
             row_of(still, "Long Addition, OOD, repaired", "Mean entropy").value);
  options.out = folder / "moved" / "attentionspan-table5-smoke";
  options.settings["training.rate"] = "0.1";
  const RecipeResult moved = table5();
  BOOST_TEST(row_of(moved, "Long Addition, OOD, base", "Mean entropy").value !=
             row_of(moved, "Long Addition, OOD, repaired", "Mean entropy").value);
  BOOST_TEST(row_of(moved, "Long Addition, OOD, repaired", "Accuracy").paper.value() == 0.87);
  BOOST_TEST(row_of(moved, "Long Addition, ID", "Max").paper.value() == 3.65);
}

// Figure 1 shows one head at each length, and the share of its attention weights that is on the
// reference tokens, to which the model must attend.
BOOST_AUTO_TEST_CASE(one_head_is_measured_at_several_lengths) {
  const TemporaryFolder folder;
  const RecipeResult result =
      recipes().at("attentionspan/fig1").run(tiny(folder / "attentionspan-fig1-smoke"));
  BOOST_TEST(result.rows.size() == 16u);
  double before = 100;
  for (const char* const length : {"10", "20", "30", "50"}) {
    const std::string name = std::string("String Reversal, length=") + length;
    const Row& head = row_of(result, name, "head on the reference, %");
    BOOST_TEST((*head.low <= head.value && head.value <= *head.high));
    // An untrained head attends to all keys, so the share of its weights on the reference tokens
    // decreases with the length.
    BOOST_TEST(head.value > 0);
    BOOST_TEST(head.value < before);
    before = head.value;
    BOOST_TEST(row_of(result, name, "tokens right, %").value < 50);
  }
  const std::string& maps = result.sections.front().second;
  std::size_t pictures = 0;
  for (std::size_t at = 0; (at = maps.find("<figure", at)) != std::string::npos; ++at) ++pictures;
  BOOST_TEST(pictures == 4u);
}

BOOST_AUTO_TEST_SUITE_END()
