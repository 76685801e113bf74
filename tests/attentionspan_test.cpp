// Tests the recipes of the AttentionSpan paper with models that are trained too briefly to learn.
#include "apps/recipes/attentionspan.h"

#include <cmath>
#include <fstream>
#include <set>
#include "tests/check.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text_file.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(attentionspan_test)

using namespace longhand;
using namespace longhand::app;
namespace fs = std::filesystem;

namespace {

RecipeOptions tiny(const fs::path& out) {
  RecipeOptions options{.out = out};
  options.control.quiet = true;
  options.settings = {{"training.steps", "2"},
                      {"training.warm_up", "0"},
                      {"training.batch", "2"},
                      {"training.evaluate_every", "1"},
                      {"training.evaluate_samples", "2"},
                      {"compute.threads", "1"}};
  return options;
}

void with_small_model(RecipeOptions& options) {
  for (const auto& [key, value] : Settings{{"model.width", "16"}, {"model.layers", "1"}}) {
    options.settings[key] = value;
  }
}

const Row& at(const RecipeResult& result, const std::string& row, const std::string& column) {
  for (const Row& r : result.rows) {
    if (r.row == row && r.column == column) return r;
  }
  LONGHAND_CHECK(false, "no row ", row, ", ", column);
  return result.rows.front();
}

void check_percent(const RecipeResult& result) {
  for (const Row& row : result.rows) {
    BOOST_TEST((*row.low <= row.value && row.value <= *row.high), row.row << ", " << row.column);
    BOOST_TEST(*row.high <= 100 + 1e-9);
    const bool of_few = row.column == "ID Acc." || row.column == "OOD Acc.";
    // The values in this column must be percentages, not fractions: a fraction could not exceed 1.
    // With so few samples, the upper end of a confidence interval is above 1%.
    if (of_few) BOOST_TEST(*row.high > 1);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(both_tables_of_models_trained_from_scratch_share_runs) {
  const TemporaryFolder folder;
  RecipeOptions options = tiny(folder / "attentionspan-table6-smoke");
  with_small_model(options);
  const RecipeResult six = recipes().at("attentionspan/table6").run(options);
  BOOST_TEST(six.rows.size() == 6u * 6);
  check_percent(six);
  BOOST_TEST(*at(six, "String Reversal", "ID Acc.").paper == 5.21);
  BOOST_TEST(*at(six, "Successor", "OOD Acc.").paper == 0.4069);
  BOOST_TEST(!at(six, "Successor", "OOD decoded").paper.has_value());
  const auto says = [&](const RecipeResult& result, const std::string& words) {
    return std::ranges::any_of(result.sections, [&](const auto& section) {
      return section.second.find(words) != std::string::npos;
    });
  };
  BOOST_TEST(says(six, "settings of the published program"));
  BOOST_TEST(says(six, "not reached"));

  options.out = folder / "attentionspan-table2-scratch-smoke";
  const RecipeResult two = recipes().at("attentionspan/table2-scratch").run(options);
  BOOST_TEST(two.rows.size() == 6u * 3);
  BOOST_TEST(at(two, "FFML", "ID Acc.").value == at(six, "FFML", "ID Acc.").value);
  BOOST_TEST(at(two, "FFML", "OOD Partial Acc.").value == at(six, "FFML", "OOD partial").value);
  BOOST_TEST(says(two, "gemma-3-1b-it"));
  BOOST_TEST(!fs::exists(options.out));

  // With other settings of the optimizer, the recipe trains separate runs.
  options.optimizer = "text";
  const RecipeResult text = recipes().at("attentionspan/table2-scratch").run(options);
  BOOST_TEST(says(text, "settings of the paper's text"));
  const RunFolder run(options.out / "scratch-ffml-text-seed-1");
  BOOST_TEST(run.config().text("training.beta1") == "0.95");
  BOOST_TEST(run.config().text("training.decay") == "0.2");
  options.optimizer = "adam";
  BOOST_CHECK_THROW(recipes().at("attentionspan/table6").run(options), Error);
}

BOOST_AUTO_TEST_CASE(table_2_fine_tunes_the_given_run_on_every_task) {
  const TemporaryFolder folder;
  const fs::path tokenizer = folder / "tokenizer.json", text = folder / "text.txt";
  write_atomically(tokenizer,
                   (*Json::parse(read_text(std::string(test_data) + "/golden/chat_templates.json",
                                           1 << 24)))["tokenizer"]
                       .dump());
  write_atomically(text, std::string(2000, 'a'));
  Config config("text");
  for (const auto& [key, value] : Settings{{"task.text", text.string()},
                                           {"task.tokenizer", tokenizer.string()},
                                           {"task.template", "qwen2"},
                                           {"task.length", "16"},
                                           {"model.width", "16"},
                                           {"model.layers", "1"},
                                           {"training.steps", "2"},
                                           {"training.evaluate_samples", "2"}}) {
    config.set(key, value);
  }
  RunFolder base = RunFolder::create(folder / "base", config);
  BOOST_TEST(train(base, {.quiet = true}).finished);

  const Recipe& recipe = recipes().at("attentionspan/table2");
  RecipeOptions options = tiny(folder / "attentionspan-table2-smoke");
  BOOST_CHECK_EXCEPTION(recipe.run(options), Error, [](const Error& error) {
    return std::string_view(error.what()).find("--model RUN") != std::string_view::npos;
  });
  options.model = base.path().string();
  const RecipeResult result = recipe.run(options);
  BOOST_TEST(result.rows.size() == 6u * 3);
  check_percent(result);
  // The paper has no results for the models of this test.
  for (const Row& row : result.rows) BOOST_TEST(!row.paper.has_value());
  std::set<std::string> tasks;
  for (const auto& entry : fs::directory_iterator(options.out)) {
    const RunFolder run(entry.path());
    tasks.insert(run.config().kind().name);
    BOOST_TEST(run.config().text("task.template") == "qwen2");
    BOOST_TEST(run.config().text("task.instruction") == "auto");
    BOOST_TEST(run.config().text("training.schedule") == "constant");
    BOOST_TEST(run.config().text("training.beta1") == "0.9");
    BOOST_TEST(run.config().text("training.clip") == "0");
  }
  BOOST_TEST(tasks.size() == 6u);
  // Finished runs of one recipe are also reused by the other recipes.
  options.tasks = "reversal";
  options.out = folder / "attentionspan-table3-smoke";
  const RecipeResult three = recipes().at("attentionspan/table3").run(options);
  BOOST_TEST(!fs::exists(options.out));
  BOOST_TEST(at(three, "String Reversal, OOD", "AttnScore, %").value > 0);
  for (const Row& row : three.rows) BOOST_TEST(row.row.starts_with("String Reversal"));
  options.tasks = "reversal,lotto";
  BOOST_CHECK_THROW(recipe.run(options), Error);
  options.tasks.clear();
  options.out = folder / "attentionspan-table2-smoke";
  BOOST_TEST(at(recipe.run(options), "FFML", "ID Acc.").value ==
             at(result, "FFML", "ID Acc.").value);
}

// Small models are trained on shorter samples of some tasks, but scored on the paper's samples.
BOOST_AUTO_TEST_CASE(models_are_scored_on_the_papers_samples) {
  RecipeOptions options;
  for (const AlgorithmicTask& task : algorithmic_tasks()) {
    const Config config = scratch_run(task, 0, options).config;
    const auto learned = config.task("train"), scored = scored_task(config, "train");
    std::set<std::size_t> lengths[2];
    for (std::uint32_t i = 0; i < 100; ++i) {
      Rng a(1, Purpose::evaluation, 0, i), b(1, Purpose::evaluation, 0, i);
      lengths[0].insert(learned->sample(a, 0).tokens.size());
      lengths[1].insert(scored->sample(b, 0).tokens.size());
    }
    const bool shorter_too = !task.option.empty();
    BOOST_TEST((lengths[0] != lengths[1]) == shorter_too, task.name);
    if (shorter_too) {
      BOOST_TEST(lengths[1].size() == 1u);
      // The longest training samples are as long as the scored samples, which all have one length.
      BOOST_TEST(*lengths[0].rbegin() == *lengths[1].begin());
    }
  }
}

// The recipe attentionspan/mechanisms reuses the plain model's run of attentionspan/table6.
BOOST_AUTO_TEST_CASE(mechanisms_differ_only_in_heads_and_positions) {
  const TemporaryFolder folder;
  RecipeOptions options = tiny(folder / "attentionspan-mechanisms-smoke");
  with_small_model(options);
  options.seeds = 1;
  const Recipe& recipe = recipes().at("attentionspan/mechanisms");
  const std::vector<GridRun> runs = recipe.runs(options);
  // The recipe trains 11 runs for each task, and further runs with other position ids for three of
  // the tasks.
  BOOST_TEST(runs.size() == 77u);
  std::set<std::string> names;
  for (const GridRun& run : runs) names.insert(run.name);
  BOOST_TEST(names.size() == 77u);
  const GridRun plain = scratch_run(algorithmic_tasks().front(), 0, options, {});
  BOOST_TEST(runs.front().name == plain.name);
  BOOST_TEST(runs.front().config.ini() == plain.config.ini());

  options.mechanisms = "rope,chacal,delta,coupled";
  options.tasks = "addition,ffml";  // ffml does not define coupled positions
  const std::vector<GridRun> some = recipe.runs(options);
  BOOST_TEST(some.size() == 7u);
  BOOST_TEST(some.back().name == "scratch-ffml-seed-1-delta");
  BOOST_TEST(some.back().config.text("model.heads") == "softmax:2,delta:2");
  const RecipeResult result = recipe.run(options);
  BOOST_TEST(result.rows.size() == 7u * 3);
  for (const Row& row : result.rows) BOOST_TEST((*row.low <= row.value && row.value <= *row.high));
  BOOST_TEST(at(result, "FFML, ChaCAL, RoPE", "OOD Acc.").paper.value() == 0.0129);
}

// For each task and seed, training a model and repairing it are one piece of work, which is done as
// a whole. A repair trains only the last column of every head's W_Q and W_K. Results are means over
// seeds.
BOOST_AUTO_TEST_CASE(repairs_use_several_seeds) {
  const TemporaryFolder folder;
  RecipeOptions options = tiny(folder / "attentionspan-sec6.4-smoke");
  with_small_model(options);
  options.seeds = 2;
  options.tasks = "reversal";
  const Recipe& columns = recipes().at("attentionspan/sec6.4");
  const std::vector<GridPiece> pieces = columns.pieces(options);
  BOOST_REQUIRE(pieces.size() == 2u);
  BOOST_TEST(pieces[1].name == "scratch-reversal-seed-2");
  // The four runs of a piece are a trained model, its repair, and as a control an untrained model
  // and its repair.
  BOOST_TEST(pieces[1].runs.size() == 4u);
  const RecipeResult result = columns.run(options);
  BOOST_TEST(result.runs.size() == 8u);
  const Row& mean = at(result, "String Reversal", "OOD partial after");
  const double first = at(result, "String Reversal", "OOD partial after, run 1").value;
  const double second = at(result, "String Reversal", "OOD partial after, run 2").value;
  BOOST_TEST(mean.value == (first + second) / 2, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(mean.low.has_value());
  // The runs already exist, so make() trains none of them again.
  BOOST_TEST(pieces[0].make());

  options.out = folder / "attentionspan-fig1-smoke";
  const RecipeResult head = recipes().at("attentionspan/fig1").run(options);
  BOOST_TEST(!fs::exists(options.out));
  // The figure shows 4 measures at each of 4 lengths. Each of these 16 results has three rows: the
  // mean over the two runs, and the value of each run.
  BOOST_TEST(head.rows.size() == 4u * 4 * 3);
  options.out = folder / "attentionspan-fig2-smoke";
  const RecipeResult gain = recipes().at("attentionspan/fig2").run(options);
  BOOST_TEST(at(gain, "String Reversal", "mean gain").low.has_value());
}

// The recipes that measure attention, and those that repair a model, need softmax heads. They use
// softmax heads even if another mechanism learns the task best.
BOOST_AUTO_TEST_CASE(heads_without_attention_are_replaced_by_softmax_where_attention_is_measured) {
  const TemporaryFolder folder;
  RecipeOptions options = tiny(folder / "attentionspan-table3-laptop");
  options.scale = app::Scale::laptop;
  options.seeds = 1;
  options.tasks = "ffml,value-assignment";
  const auto runs = recipes().at("attentionspan/table3").runs(options);
  BOOST_TEST(runs.size() == 2u);
  BOOST_TEST(runs[0].name == "scratch-ffml-seed-1-softmax");
  BOOST_TEST(runs[0].config.text("model.heads") == "softmax:4");
  BOOST_TEST(runs[1].config.text("model.heads") == "chacal:4");
  const auto learned = recipes().at("attentionspan/table6").runs(options);
  BOOST_TEST(learned[0].config.text("model.heads") == "softmax:2,delta:2");
  BOOST_TEST(head_count("softmax:2,delta:2") == 4);
  BOOST_TEST(head_count("softmax:12") == 12);
}

BOOST_AUTO_TEST_SUITE_END()
