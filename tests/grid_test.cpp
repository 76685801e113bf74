#include "apps/recipes/grid.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include "tests/check.h"

#include "apps/html/page.h"
#include "apps/run/run_summary.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "tests/contents.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(grid_test)

using namespace longhand;
using namespace longhand::app;
namespace fs = std::filesystem;

namespace {

constexpr app::Scale scales[] = {app::Scale::smoke, app::Scale::laptop, app::Scale::paper,
                                 app::Scale::extended};

}  // namespace

BOOST_AUTO_TEST_CASE(the_parts_of_a_grid_together_train_every_run_once) {
  std::vector<GridRun> runs;
  for (int i = 0; i < 7; ++i) runs.push_back({std::to_string(i), Config("chains")});
  for (const std::size_t parts : {1, 2, 3, 7, 9}) {
    std::multiset<std::string> seen;
    for (std::size_t part = 1; part <= parts; ++part) {
      for (const GridRun& run : part_of(runs, {part, parts})) seen.insert(run.name);
    }
    BOOST_TEST(seen.size() == 7u);
    BOOST_TEST(std::set(seen.begin(), seen.end()).size() == 7u);
  }
  BOOST_TEST(part_of(runs, {2, std::numeric_limits<std::size_t>::max()}).size() == 1u);
  BOOST_TEST(parse_part("2/8")->part == 2u);
  BOOST_TEST(parse_part("2/8")->parts == 8u);
  for (const char* wrong : {"", "2", "2/", "/8", "0/8", "9/8", "2/8x", "-1/8", "a/b"}) {
    BOOST_TEST(!parse_part(wrong), wrong);
  }
}

BOOST_AUTO_TEST_CASE(the_mean_over_runs_has_student_s_interval) {
  const MeanOverRuns four = mean_over(std::vector<double>{1, 2, 3, 6});
  BOOST_TEST(four.mean == 3);
  // The sample variance s^2 is 14/3, and Student's t for 3 degrees of freedom is 3.182446. The
  // interval extends t sqrt(s^2 / 4) = t sqrt(14/12) to both sides of the mean.
  BOOST_TEST(std::abs(*four.high - 3 - 3.182446 * std::sqrt(14.0 / 12)) < 1e-6);
  BOOST_TEST(std::abs(*four.low - 3 + 3.182446 * std::sqrt(14.0 / 12)) < 1e-6);
  const MeanOverRuns one = mean_over(std::vector<double>{0.5});
  BOOST_TEST(one.mean == 0.5);
  BOOST_TEST(!one.low.has_value());
}

BOOST_AUTO_TEST_CASE(runs_of_a_task_differ_in_the_settings_that_are_named) {
  Config one("words"), other("words");
  BOOST_TEST(differences(one, other).empty());
  other.set("training.rate", "3e-3");
  other.set("task.group", "s2");
  BOOST_TEST(differences(one, other) == "task.group = s2\ntraining.rate = 3e-3\n");
}

BOOST_AUTO_TEST_CASE(configurations_are_printed_once_per_task_and_then_as_differences) {
  const TemporaryFolder folder;
  Config one("words"), other("words"), third("chains");
  other.set("training.rate", "3e-3");
  std::vector<fs::path> paths;
  for (const auto& [name, config] : {std::pair{"one", one}, {"other", other}, {"third", third}}) {
    paths.push_back(folder.path() / name);
    open_or_create(paths.back(), config).open();
  }
  const std::string listed = configurations(paths);
  BOOST_TEST(listed.starts_with("# one\n" + one.ini()));
  BOOST_TEST(contains(listed, "\n# other, as words's first but for\ntraining.rate = 3e-3\n\n"));
  BOOST_TEST(contains(listed, "\n# third\n" + third.ini()));
}

BOOST_AUTO_TEST_CASE(all_runs_of_a_grid_have_different_names_and_valid_settings) {
  int grids = 0;
  for (const auto& [id, recipe] : recipes()) {
    if (!recipe.runs) continue;
    ++grids;
    for (const app::Scale scale : scales) {
      if (scale == app::Scale::extended && !recipe.scales.contains(scale)) continue;
      std::set<std::string> names;
      const auto runs = recipe.runs({.scale = scale, .out = "unused"});
      for (const GridRun& run : runs) {
        BOOST_TEST_CONTEXT(id << " " << name_of(scale) << " " << run.name) {
          BOOST_CHECK_NO_THROW(run.config.check());
        }
        names.insert(run.name);
      }
      BOOST_TEST(!runs.empty());
      BOOST_TEST(names.size() == runs.size(), id);
    }
  }
  BOOST_TEST(grids >= 12);
}

// The number of threads does not change the bits of a run. A finished run is therefore reused for
// any number of threads, but not for another number of steps.
BOOST_AUTO_TEST_CASE(a_finished_run_is_reused_for_any_number_of_threads) {
  const TemporaryFolder folder;
  RecipeOptions options{.out = folder / "grid"};
  options.control.quiet = true;
  const auto with = [](const char* threads, const char* steps) {
    Config config("chains");
    config.set("model.width", "16");
    config.set("model.layers", "1");
    config.set("training.steps", steps);
    config.set("training.evaluate_samples", "2");
    config.set("compute.threads", threads);
    return std::vector<GridRun>{{"run", config}};
  };
  BOOST_TEST(train_runs(with("1", "2"), options));
  const auto written = fs::last_write_time(folder / "grid" / "run" / "metrics.jsonl");
  BOOST_TEST(train_runs(with("2", "2"), options));
  BOOST_TEST((fs::last_write_time(folder / "grid" / "run" / "metrics.jsonl") == written));
  auto written_differently = with("1", "2");
  written_differently[0].config.set("training.rate", "0.001");
  BOOST_TEST(train_runs(written_differently, options));
  BOOST_CHECK_THROW(train_runs(with("1", "3"), options), Error);
}

namespace {

/// A very small run on the task `chains`.
GridRun tiny_run(const std::string& steps) {
  GridRun run{"run", recipe_config("chains")};
  set_all(run.config, {{"model.width", "16"},
                       {"model.layers", "1"},
                       {"training.steps", steps},
                       {"training.evaluate_samples", "2"}});
  return run;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_recipe_continues_runs_of_an_older_version) {
  const TemporaryFolder folder;
  RecipeOptions options{.out = folder / "grid"};
  options.control.quiet = true;
  const std::vector<GridRun> runs{tiny_run("2")};
  BOOST_TEST(train_runs(runs, options));
  std::string older = contents(folder / "grid/run/config.ini");
  for (const std::string line : {"rate_at = end\n", "checkpoint_minutes = 10\n"}) {
    BOOST_REQUIRE(older.find(line) != std::string::npos);
    older.erase(older.find(line), line.size());
  }
  write_atomically(folder / "grid/run/config.ini", older);
  const auto written = fs::last_write_time(folder / "grid/run/metrics.jsonl");
  BOOST_TEST(train_runs(runs, options));
  BOOST_TEST((fs::last_write_time(folder / "grid/run/metrics.jsonl") == written));
}

BOOST_AUTO_TEST_CASE(a_finished_run_of_another_backend_is_evaluated_on_the_requested_one) {
  const TemporaryFolder folder;
  RecipeOptions options{.out = folder / "grid"};
  options.control.quiet = true;
  GridRun run = tiny_run("2");
  run.config.set("compute.backend", "reference");
  BOOST_TEST(train_runs(std::span(&run, 1), options));
  run.config.set("compute.backend", "cpu");
  const auto written = fs::last_write_time(folder / "grid/run/metrics.jsonl");
  BOOST_TEST(train_runs(std::span(&run, 1), options));
  BOOST_TEST((fs::last_write_time(folder / "grid/run/metrics.jsonl") == written));
  BOOST_TEST(load_finished(run, options).backend->name() == "cpu");
  // An unfinished run is not continued on another backend, because its bits would differ.
  fs::remove_all(folder / "grid/run/checkpoints/step-2");
  BOOST_CHECK_THROW(train_runs(std::span(&run, 1), options), Error);
}

BOOST_AUTO_TEST_CASE(steps_that_the_metrics_lack_count_with_the_mean_duration_of_the_others) {
  const TemporaryFolder folder;
  RecipeOptions options{.out = folder / "grid"};
  options.control.quiet = true;
  const GridRun run = tiny_run("4");
  BOOST_TEST(train_runs(std::span(&run, 1), options));
  double all = 0;
  std::vector<double> seconds;
  for (const Json& line : RunFolder(folder / "grid/run").metrics()) {
    if (line.contains("seconds")) seconds.push_back(line["seconds"].number());
  }
  BOOST_TEST_REQUIRE(seconds.size() == 4u);
  for (const double one : seconds) all += one;
  BOOST_TEST(summarize(folder / "grid/run").seconds == all);
  write_atomically(folder / "grid/run/metrics.jsonl",
                   "{\"step\":1,\"seconds\":0.5}\n{\"step\":4,\"seconds\":1.5}\n");
  BOOST_TEST(summarize(folder / "grid/run").seconds == 4.0);
}

// Executes ChaCAL recipes from training to the table, with models that are trained too briefly to
// learn.
BOOST_AUTO_TEST_CASE(chacal_recipes_produce_their_rows_and_share_runs) {
  const TemporaryFolder folder;
  std::map<std::string, RecipeResult> results;
  for (const std::string id : {"chacal/table1", "chacal/fig3", "chacal/fig5", "chacal/theorem1"}) {
    RecipeOptions options{.out = folder / ("chacal-" + id.substr(7) + "-smoke")};
    options.control.quiet = true;
    options.settings = {{"model.width", "16"},
                        {"model.inner", "16"},
                        {"training.steps", "2"},
                        {"training.warm_up", "1"},
                        {"training.batch", "2"},
                        {"training.evaluate_every", "1"},
                        {"training.evaluate_samples", "2"},
                        {"compute.threads", "1"}};
    results[id] = recipes().at(id).run(options);
    BOOST_TEST(!results[id].stopped);
    BOOST_TEST(results[id].sections.size() >= 1u);
    BOOST_TEST(!results[id].runs.empty());
    for (const Row& row : results[id].rows) {
      BOOST_TEST(std::isfinite(row.value));
      if (row.low) BOOST_TEST(*row.low <= row.value);
      if (row.high) BOOST_TEST(*row.high >= row.value);
    }
  }
  const auto value = [&](const std::string& id, const std::string& row, const std::string& column) {
    for (const Row& r : results[id].rows) {
      if (r.row == row && r.column == column) return r.value;
    }
    BOOST_FAIL(id << " has no row " << row << ", " << column);
    return 0.0;
  };
  BOOST_TEST(value("chacal/table1", "ChaCAL L=1", "loss") > 1);
  BOOST_TEST(value("chacal/table1", "Standard L=1", "accuracy") < 0.5);
  BOOST_TEST(value("chacal/fig3", "Standard L=1", "step 2") > 0);
  BOOST_TEST(value("chacal/theorem1", "depth 7", "layers by the bound") == 3);
  BOOST_TEST(value("chacal/theorem1", "depth 1", "Standard L=2") >= 0);
  // Figures 3 and 5 of the ChaCAL paper reuse the runs of Table 1 with the first seed and the
  // default gamma. The folder of Figure 3 therefore contains only runs with other seeds.
  BOOST_TEST(fs::exists(folder / "chacal-fig3-smoke" / "chacal-1-seed-2"));
  BOOST_TEST(!fs::exists(folder / "chacal-fig3-smoke" / "chacal-1-seed-1"));
  BOOST_TEST(value("chacal/fig5", "gamma 0.9", "accuracy") ==
             value("chacal/table1", "ChaCAL L=1", "accuracy"));
  // With gamma 0, ChaCAL's formula is standard attention.
  BOOST_TEST(value("chacal/fig5", "gamma 0", "accuracy") ==
             value("chacal/table1", "Standard L=1", "accuracy"));
}

// The recipe of Table 3 trains a language model. It continues the training once with the same
// attention heads and once with heads of another kind.
BOOST_AUTO_TEST_CASE(chacal_table_3_replaces_the_heads_of_a_trained_model) {
  const TemporaryFolder folder;
  {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 300; ++i) text << "line " << i << " of a text\n";
  }
  const Recipe& recipe = recipes().at("chacal/table3");
  RecipeOptions options{.out = folder / "table3"};
  options.control.quiet = true;
  options.text = (folder / "text.txt").string();
  options.settings = {
      {"model.width", "16"},     {"model.inner", "16"},    {"training.steps", "6"},
      {"training.warm_up", "1"}, {"training.batch", "2"},  {"training.evaluate_samples", "2"},
      {"task.length", "16"},     {"compute.threads", "1"}, {"training.rate", "1e-2"}};
  const RecipeResult result = recipe.run(options);
  BOOST_REQUIRE(result.rows.size() == 6u);
  for (const Row& row : result.rows) {
    BOOST_TEST((*row.low <= row.value && row.value <= *row.high), row.row << ", " << row.column);
  }
  BOOST_TEST(result.rows[0].value < 256);  // the perplexity of guessing a byte is 256
  BOOST_TEST(result.rows[2].value < result.rows[0].value);
  BOOST_TEST(std::abs(result.rows[1].value -
                      std::log(result.rows[0].value / result.rows[2].value)) < 1e-6);
  BOOST_TEST(*result.rows[4].paper == 21.46);

  // The run with other heads starts from the trained parameters. It reads every tensor that has the
  // same name in both models.
  const RunFolder base(folder / "table3/pre-trained"), other(folder / "table3/fine-tuned-chacal");
  BOOST_TEST(other.config().text("model.heads") == "chacal:4");
  const LoadedRun trained = load_run(base.path());
  const LoadedRun begun = load_run(other.path(), {.step = 0});
  BOOST_TEST(begun.model->parameters().all()[0].value().to_doubles() ==
                 trained.model->parameters().all()[0].value().to_doubles(),
             boost::test_tools::per_element());

  // A second execution of the recipe reuses its runs.
  const auto written = fs::last_write_time(other.path() / "metrics.jsonl");
  BOOST_TEST(recipe.run(options).rows[4].value == result.rows[4].value);
  BOOST_TEST((fs::last_write_time(other.path() / "metrics.jsonl") == written));
  // The option `model` names a run. The recipe then continues this run's model instead of training
  // its own.
  options.model = base.path().string();
  options.out = folder / "given";
  options.heads = "fal";
  const RecipeResult given = recipe.run(options);
  BOOST_TEST(given.rows[2].value == result.rows[2].value);
  BOOST_TEST(given.rows[4].row == "GPT-2 + fal (fine-tuned)");
  BOOST_TEST(!given.rows[4].paper.has_value());
  // If the option names another trained model, the finished runs are not reused, because they
  // started from other parameters.
  options.model = (folder / "table3/fine-tuned-standard").string();
  const RecipeResult after = recipe.run(options);
  BOOST_TEST(after.rows[0].value == result.rows[2].value);
  BOOST_TEST(after.rows[4].value != given.rows[4].value);

  options.heads = "softmax";
  BOOST_CHECK_THROW(recipe.run(options), Error);
  options.heads = "nothing";
  BOOST_CHECK_THROW(recipe.run(options), Error);
  options.text = "";
  BOOST_CHECK_THROW(recipe.run(options), Error);
}

// Executes both recipes of First-After-Last (FAL) with one and two seeds. The models are trained
// too briefly to learn.
BOOST_AUTO_TEST_CASE(fal_recipes_train_every_seed_and_share_runs) {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& id, std::int64_t seeds) {
    RecipeOptions options{.seeds = seeds, .out = folder / ("fal-" + id.substr(4) + "-smoke")};
    options.control.quiet = true;
    options.settings = {{"task.instructions", "8"}, {"model.width", "16"},
                        {"training.steps", "2"},    {"training.warm_up", "1"},
                        {"training.batch", "2"},    {"training.evaluate_samples", "4"},
                        {"compute.threads", "1"}};
    RecipeResult result = recipes().at(id).run(options);
    BOOST_TEST(!result.stopped);
    return result.rows;
  };
  const auto at = [](const std::vector<Row>& rows, const std::string& row,
                     const std::string& column) {
    for (const Row& r : rows) {
      if (r.row == row && r.column == column) return r;
    }
    BOOST_FAIL("no row " << row << ", " << column);
    return Row{};
  };
  const auto one = make("fal/table1", 1), two = make("fal/table1", 2);
  BOOST_TEST(one.size() == 12u);  // 2 models x 3 distributions x 2 metrics (sequences and reads)
  BOOST_TEST(two.size() == 12u * 3);
  for (const Row& row : one) {
    BOOST_TEST(row.in_table);
    const Row mean = at(two, row.row, row.column);
    const Row first = at(two, row.row, row.column + ", run 1");
    const Row second = at(two, row.row, row.column + ", run 2");
    // With two seeds, the first run has the same score as the only run with one seed.
    BOOST_TEST(first.value == row.value);
    BOOST_TEST(!first.in_table);
    BOOST_TEST(!first.paper.has_value());
    BOOST_TEST(mean.value == (first.value + second.value) / 2);
    BOOST_TEST((mean.paper == row.paper));
  }
  for (const char* run : {"flip-flop-baseline", "flip-flop-fal", "flip-flop-baseline-seed-2",
                          "flip-flop-fal-seed-2"}) {
    BOOST_TEST(fs::exists(folder / "fal-table1-smoke" / run), run);
  }

  const auto shares = make("fal/figure2", 2);
  // Figure 2 has three columns for each of two layers. The result has three rows for each column:
  // the mean and the values of both runs.
  BOOST_TEST(shares.size() == 2u * 3 * 3);
  for (const Row& row : shares) BOOST_TEST(row.value <= 1);
  BOOST_TEST(!fs::exists(folder / "fal-figure2-smoke"));
}

BOOST_AUTO_TEST_SUITE_END()
