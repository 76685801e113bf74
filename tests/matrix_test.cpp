// Tests the recipe `matrix`, which trains a decoder with each attention mechanism on each task. A
// cell of its table is one mechanism on one task. The models here are trained too briefly to learn.
#include "apps/recipes/matrix.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/check.h"

#include "apps/command.h"
#include "apps/html/heat_table.h"
#include "core/error.h"
#include "core/text_file.h"
#include "tests/temporary_folder.h"

using namespace longhand;
using namespace longhand::app;
using namespace longhand::app::matrix;
namespace fs = std::filesystem;

namespace {

constexpr app::Scale all_scales[] = {app::Scale::smoke, app::Scale::laptop, app::Scale::paper};

RecipeOptions small_matrix(const fs::path& out, app::Scale scale) {
  RecipeOptions options{.scale = scale, .out = out};
  options.control.quiet = true;
  options.settings = {{"training.steps", "8"},  {"training.batch_tokens", "64"},
                      {"model.width", "16"},    {"model.layers", "1"},
                      {"compute.threads", "1"}, {"training.checkpoint_every", "0"}};
  options.mechanisms = "rope,fal";
  options.tasks = "flip-flop,parity";
  return options;
}

const Mechanism& mechanism_of(std::string_view name) {
  for (const Mechanism& m : mechanisms()) {
    if (m.name == name) return m;
  }
  fail("no mechanism ", name);
}
const MatrixTask& matrix_task_of(std::string_view name) {
  for (const MatrixTask& t : matrix_tasks()) {
    if (t.name == name) return t;
  }
  fail("no task ", name);
}

std::string usage_error(const RecipeOptions& options) {
  try {
    choose(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(matrix_test)

BOOST_AUTO_TEST_CASE(every_cell_has_valid_settings_and_tests) {
  for (const app::Scale scale : all_scales) {
    const RecipeOptions options{.scale = scale, .out = "unused"};
    std::set<std::string> names;
    for (const MatrixTask& task : matrix_tasks()) {
      for (const Mechanism& mechanism : mechanisms()) {
        const Cell cell{&mechanism, &task};
        if (!cell.exists()) continue;
        BOOST_TEST_CONTEXT(name_of(scale) << " " << cell.name()) {
          const GridRun run = cell_run(cell, "3e-3", 1, options);
          BOOST_CHECK_NO_THROW(run.config.check());
          BOOST_TEST(names.insert(run.name).second);
          BOOST_TEST(run.config.text("training.rate") == "3e-3");
          BOOST_TEST(run.config.text("training.seed") == "2");
          BOOST_TEST(run.config.text("training.evaluate_samples") == "0");
          if (run.config.text("model.position_ids") == "places") continue;
          Rng rng(1, Purpose::evaluation, 0, 0);
          const auto longest = test_task(run.config, task, {"8x", 8}, scale);
          BOOST_TEST(longest->sample(rng, 0).positions.size() > 8u);
        }
      }
      const Config config = cell_run({&mechanism_of("rope"), &task}, "3e-3", 0, options).config;
      std::size_t longest = 0;
      for (const Test& test : tests_of(task)) {
        const auto samples = test_task(config, task, test, scale);
        Rng rng(1, Purpose::evaluation, 0, 0);
        const std::size_t length = samples->sample(rng, 0).tokens.size();
        BOOST_TEST(samples->vocabulary().size() == config.task()->vocabulary().size());
        if (test.factor < 2) continue;
        BOOST_TEST(length > longest, task.name << " " << test.name);
        longest = length;
      }
    }
  }
}

// The matrix compares mechanisms on the same task, so their models must have about the same size.
BOOST_AUTO_TEST_CASE(models_of_a_task_differ_by_less_than_three_percent_in_size) {
  const auto backend = make_backend("cpu", {.threads = 1});
  for (const app::Scale scale : {app::Scale::smoke, app::Scale::paper}) {
    const RecipeOptions options{.scale = scale, .out = "unused"};
    const MatrixTask& task = matrix_task_of("parity");  // the task with the smallest vocabulary
    const auto size = [&](const Mechanism& mechanism) {
      const Config config = cell_run({&mechanism, &task}, "1e-3", 0, options).config;
      return static_cast<double>(
          nn::Decoder(*backend, config.model(*config.task()), 1).parameters().count());
    };
    const double plain = size(mechanism_of("rope"));
    for (const Mechanism& mechanism : mechanisms()) {
      if (!Cell{&mechanism, &task}.exists()) continue;
      BOOST_TEST(std::abs(size(mechanism) / plain - 1) < 0.03, mechanism.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(mechanisms_and_tasks_are_selected_by_name_or_refused) {
  RecipeOptions options{.out = "unused"};
  BOOST_TEST(choose(options).mechanisms.size() == 6u);
  BOOST_TEST(choose(options).tasks.size() == 4u);
  BOOST_TEST(cells(choose(options)).size() == 24u);
  options.mechanisms = "sink,rope";
  options.tasks = "boxes";
  const std::vector<Cell> chosen = cells(choose(options));
  BOOST_TEST(chosen.size() == 2u);
  BOOST_TEST(chosen[0].name() == "boxes-sink");
  for (const char* wrong : {"ropes", "rope,", ",", "rope,,nope", "rope,rope", "\x1b[2J"}) {
    options.mechanisms = wrong;
    const std::string message = usage_error(options);
    BOOST_TEST(message.starts_with("--mechanisms: "), message);
    BOOST_TEST(message.find('\x1b') == std::string::npos);
  }
  options.mechanisms = "ropes";
  BOOST_TEST(usage_error(options).find("the known names are rope, nope, ") != std::string::npos);
  options.mechanisms = "rope";
  options.tasks = "sort";
  BOOST_TEST(usage_error(options).find("the known names are flip-flop, recall, ") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_folder_of_the_user_is_a_task_whose_files_are_its_tests) {
  const TemporaryFolder folder;
  const fs::path mine = folder / "mine";
  fs::create_directories(mine);
  const auto write = [&](const char* name, const char* word) {
    std::ofstream file(mine / name);
    for (int i = 0; i < 20; ++i) {
      file << R"({"prompt":")" << word << i << R"(=","answer":")" << i << word << "\"}\n";
    }
  };
  write("train.jsonl", "ab");
  write("id.jsonl", "ba");
  write("long.jsonl", "abababab");
  RecipeOptions options = small_matrix(folder / "matrix", app::Scale::smoke);
  options.mechanisms = "rope";
  options.tasks = "parity," + mine.string();
  const Choice choice = choose(options);
  BOOST_REQUIRE(choice.tasks.size() == 2u);
  BOOST_TEST(choice.tasks[1]->name == "mine");
  options.tasks = mine.string();
  const RecipeResult result = recipes().at("matrix").run(options);
  BOOST_TEST(!result.stopped);
  std::string columns;
  for (const Row& row : result.rows) {
    if (row.in_table) columns += row.column + " ";
  }
  BOOST_TEST(columns == "id long ");
  const Cell cell{&mechanism_of("rope"), choose(options).tasks[0]};
  BOOST_TEST(read_cell(cell, options).has_value());
  write("long.jsonl", "abbaabba");  // results of the old test file must not be reused
  BOOST_TEST(!read_cell(cell, options).has_value());
  options.tasks = mine.string() + "," + mine.string();
  BOOST_TEST(usage_error(options) == "--tasks: \"mine\" is named twice");
  options.tasks = (folder / "none").string();
  BOOST_TEST(usage_error(options).find("no such file or folder") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(published_figures_belong_to_cells) {
  BOOST_TEST(!published(matrix_task_of("flip-flop"), mechanism_of("fal")).empty());
  BOOST_TEST(published(matrix_task_of("parity"), mechanism_of("alibi")).empty());
  for (const MatrixTask& task : matrix_tasks()) BOOST_TEST(!task.best.empty(), task.name);
}

BOOST_AUTO_TEST_CASE(the_score_of_guessing_is_that_of_the_most_frequent_answer) {
  Config coins("words");
  for (const auto& [key, value] : Settings{{"task.group", "s2"}, {"task.max", "30"}}) {
    coins.set(key, value);
  }
  const Guess fair = guess_of(*coins.task());
  BOOST_TEST(std::abs(fair.loss - std::log(2)) < 1e-3);
  BOOST_TEST(std::abs(score_of(fair, *coins.task()) - 0.5) < 0.02);
  Config recall("recall");
  recall.set("task.vocabulary", "256");
  recall.set("task.tokens", "64");
  recall.set("task.pairs", "8");
  const Guess values = guess_of(*recall.task());
  BOOST_TEST(std::abs(values.loss - std::log(128)) < 0.05);
  BOOST_TEST(score_of(values, *recall.task()) < 0.02);
}

BOOST_AUTO_TEST_CASE(a_run_is_stopped_early_because_of_its_latest_losses) {
  std::vector<double> losses(100, 0.1);
  BOOST_TEST(!is_hopeless(losses, 1));
  // Sets high losses in the last tenth of the steps.
  for (std::size_t i = 90; i < 100; ++i) losses[i] = 0.96;
  BOOST_TEST(is_hopeless(losses, 1));
  losses[99] = 0.8;  // now the mean over the last tenth of the steps is 0.944
  BOOST_TEST(!is_hopeless(losses, 1));
  BOOST_TEST(is_hopeless(std::vector<double>{0.7}, 0.69));
  BOOST_TEST(!is_hopeless({}, 1));
}

BOOST_AUTO_TEST_CASE(a_cell_is_trained_once_and_then_reused) {
  const TemporaryFolder folder;
  const RecipeOptions options = small_matrix(folder / "matrix", app::Scale::smoke);
  const Recipe& recipe = recipes().at("matrix");
  const RecipeResult result = recipe.run(options);
  BOOST_TEST(!result.stopped);
  BOOST_TEST(result.has_table);
  const std::string configured = configurations(result.runs);
  for (const char* run : {"# flip-flop-rope-1e-3-seed-1\n", "# parity-fal-1e-2-seed-1, as "}) {
    BOOST_TEST(configured.find(run) != std::string::npos, run);
  }
  const Cell cell{&mechanism_of("rope"), &matrix_task_of("flip-flop")};
  const auto made = read_cell(cell, options);
  BOOST_TEST_REQUIRE(made.has_value());
  BOOST_TEST(made->trials.size() == 3u);
  BOOST_TEST(made->runs.size() == 1u);
  BOOST_TEST(made->runs[0].rate == made->rate);
  for (const CellRun& trial : made->trials) {
    const double least = [&] {
      double loss = *made->trials[0].loss;
      for (const CellRun& other : made->trials) loss = std::min(loss, *other.loss);
      return loss;
    }();
    if (trial.rate == made->rate) BOOST_TEST(*trial.loss == least);
  }
  BOOST_TEST(made->runs[0].scores.size() == 6u);
  std::set<std::string> columns;
  for (const Row& row : result.rows) {
    if (row.in_table) columns.insert(row.column);
    if (row.in_table) BOOST_TEST((*row.low <= row.value && row.value <= *row.high));
  }
  BOOST_TEST((columns == std::set<std::string>{"id", "2x", "4x", "8x", "sparse", "drift"}));
  // If only the number of threads changes, all runs are reused. Other settings require new runs.
  const auto before = fs::last_write_time(options.out / "flip-flop-rope.json");
  RecipeOptions again = options;
  again.settings["compute.threads"] = "2";
  again.control.until = std::chrono::steady_clock::now();
  const RecipeResult second = recipe.run(again);
  BOOST_TEST(!second.stopped);
  BOOST_TEST(second.rows.size() == result.rows.size());
  BOOST_TEST(fs::last_write_time(options.out / "flip-flop-rope.json") == before);
  again.settings["model.width"] = "32";
  BOOST_TEST(!read_cell(cell, again).has_value());
}

// The runs of this test learn nothing, so they are stopped at half of their steps.
BOOST_AUTO_TEST_CASE(cells_that_do_not_learn_end_early_and_interrupted_cells_continue) {
  const TemporaryFolder folder;
  RecipeOptions options = small_matrix(folder / "matrix", app::Scale::laptop);
  options.tasks = "parity";
  options.mechanisms = "rope";
  options.control.until = std::chrono::steady_clock::now();
  const Recipe& recipe = recipes().at("matrix");
  const RecipeResult nothing = recipe.run(options);
  BOOST_TEST(nothing.stopped);
  BOOST_TEST(!nothing.partial);
  options.control.until.reset();
  BOOST_TEST(!recipe.run(options).stopped);
  const Cell parity{&mechanism_of("rope"), &matrix_task_of("parity")};
  const auto made = read_cell(parity, options);
  BOOST_TEST_REQUIRE(made.has_value());
  BOOST_TEST(made->hopeless());
  BOOST_TEST(made->runs.size() == 1u);
  for (const CellRun& run : made->trials) {
    BOOST_TEST(run.step == 4);
    BOOST_TEST(run.end == "hopeless");
  }

  // The results for one seed must not be used if two seeds are required.
  RecipeOptions more = options;
  more.seeds = 2;
  BOOST_TEST(!read_cell(parity, more).has_value());
}

// After half of its steps, a run is stopped if its loss is still near the loss of guessing
// (is_hopeless()). This does not happen here: in samples of the task `cycle`, nodes and separators
// alternate. The model learns this quickly, so its loss soon is below the loss of guessing.
BOOST_AUTO_TEST_CASE(a_cell_of_several_seeds_shows_their_median_and_range) {
  const TemporaryFolder folder;
  RecipeOptions options = small_matrix(folder / "matrix", app::Scale::smoke);
  options.settings["training.steps"] = "240";
  options.settings["training.batch_tokens"] = "256";
  options.mechanisms = "rope";
  options.tasks = "cycle";
  options.seeds = 3;
  const RecipeResult result = recipes().at("matrix").run(options);
  const auto made = read_cell({&mechanism_of("rope"), &matrix_task_of("cycle")}, options);
  BOOST_TEST_REQUIRE(made.has_value());
  BOOST_TEST(!made->hopeless());
  BOOST_TEST_REQUIRE(made->runs.size() == 3u);
  std::set<std::uint64_t> seeds_seen;
  for (const CellRun& run : made->runs) {
    seeds_seen.insert(run.seed);
    BOOST_TEST(run.step == 240);
    BOOST_TEST(run.rate == made->rate);
  }
  BOOST_TEST((seeds_seen == std::set<std::uint64_t>{1, 2, 3}));
  std::vector<double> values = made->scores(0);
  std::ranges::sort(values);
  std::size_t found = 0;
  for (const Row& row : result.rows) {
    if (row.column == "id") {
      ++found;
      BOOST_TEST(row.value == values[1]);
      BOOST_TEST(*row.low == values[0]);
      BOOST_TEST(*row.high == values[2]);
    }
    if (row.column == "id, mean" || row.column == "id, run 3") {
      ++found;
      BOOST_TEST(!row.in_table);
    }
  }
  BOOST_TEST(found == 3u);
}

BOOST_AUTO_TEST_CASE(parts_of_the_cells_can_be_trained_separately) {
  const TemporaryFolder folder;
  RecipeOptions options = small_matrix(folder / "matrix", app::Scale::smoke);
  const Recipe& recipe = recipes().at("matrix");
  const std::vector<GridPiece> pieces = recipe.pieces(options);
  BOOST_TEST(pieces.size() == 4u);
  BOOST_TEST(pieces[1].name == "flip-flop-fal");
  BOOST_TEST(pieces[1].make());
  // The time limit has passed, so the recipe trains no other cell.
  options.control.until = std::chrono::steady_clock::now();
  const RecipeResult result = recipe.run(options);
  BOOST_TEST(result.stopped);
  BOOST_TEST(result.partial);
  for (const Row& row : result.rows) {
    BOOST_TEST(row.row == "Flip-flop, FAL beside softmax, RoPE");
  }
}

BOOST_AUTO_TEST_CASE(the_background_colour_of_a_figure_shows_its_share_above_guessing) {
  const std::string html = html::heat_table(
      {.groups = {{"A<", {"x", "y"}}},
       .rows = {
           {"r", {{.text = "7", .small = "5", .share = 1, .title = "\"t\""}, {.text = "0"}}}}});
  BOOST_TEST(html.find("colspan=\"2\"") != std::string::npos);
  BOOST_TEST(html.find("A&lt;") != std::string::npos);
  BOOST_TEST(html.find("title=\"&quot;t&quot;\"") != std::string::npos);
  BOOST_TEST(html.find("rgba(var(--hot),0.55)") != std::string::npos);
  BOOST_TEST(html.find("rgba(var(--hot),0)") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
