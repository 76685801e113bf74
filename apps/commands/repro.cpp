#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "apps/compute.h"
#include "apps/machine.h"
#include "apps/recipes/grid.h"
#include "apps/recipes/results_page.h"
#include "apps/run/plan.h"
#include "apps/run/ranks.h"
#include "apps/run/run_summary.h"
#include "apps/version.h"
#include "core/atomic_file.h"
#include "core/nearest.h"
#include "core/quote.h"
#include "nn/options.h"

namespace longhand::app::repro_command {
namespace {

/// Flags that only some recipes accept.
struct Taken {
  const char* flag;
  std::string RecipeOptions::*value;
};
constexpr Taken all_taken[] = {
    {"model", &RecipeOptions::model},           {"text", &RecipeOptions::text},
    {"heads", &RecipeOptions::heads},           {"optimizer", &RecipeOptions::optimizer},
    {"mechanisms", &RecipeOptions::mechanisms}, {"tasks", &RecipeOptions::tasks}};

void list(bool json) {
  Report report({{"recipe", "recipe"}, {"makes", "makes"}});
  for (const auto& [id, recipe] : recipes()) {
    Json row{{"recipe", id}, {"makes", recipe.summary}};
    for (const auto& [scale, what] : recipe.scales) row[name_of(scale)] = what;
    report.add(row);
  }
  report.print(std::cout, json);
}

/// The parts of a recipe that can be computed separately: the runs of its grid, or the pieces that
/// the recipe itself defines.
std::vector<GridPiece> pieces_of(const Recipe& recipe, const RecipeOptions& options) {
  if (recipe.pieces) return recipe.pieces(options);
  std::vector<GridPiece> pieces;
  for (const GridRun& run : recipe.runs(options)) {
    pieces.push_back(
        {run.name, {run}, [run, options] { return train_runs(std::span(&run, 1), options); }});
  }
  return pieces;
}

/// Lists the separately computable parts of a recipe with their numbers of floating-point
/// operations.
void list_runs(const Recipe& recipe, const RecipeOptions& options, bool json) {
  Report report({{"number", "number"},
                 {"run", "run"},
                 {"runs", "runs", "%.0f"},
                 {"parameters", "parameters", "%.0f"},
                 {"steps", "steps", "%.0f"},
                 {"operations", "operations", "%.3g"}});
  double operations = 0;
  const std::vector<GridPiece> pieces = pieces_of(recipe, options);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    TrainingWork all;
    for (const GridRun& run : pieces[i].runs) {
      const TrainingWork work = training_work(run.config);
      all.parameters = std::max(all.parameters, work.parameters);
      all.steps += work.steps;
      all.operations += work.operations;
    }
    operations += all.operations;
    report.add({{"number", i + 1},
                {"run", pieces[i].name},
                {"runs", pieces[i].runs.size()},
                {"parameters", all.parameters},
                {"steps", all.steps},
                {"operations", all.operations}});
  }
  report.set("operations", operations);
  report.print(std::cout, json);
}

/// The indices of the pieces that --only selects. Pieces are the separately computable parts of a
/// recipe. --only names one piece, or a share of all pieces such as "2/8".
std::vector<std::size_t> chosen_pieces(const std::vector<GridPiece>& pieces,
                                       const std::string& only) {
  const auto named = std::ranges::find(pieces, only, &GridPiece::name);
  if (named != pieces.end()) return {static_cast<std::size_t>(named - pieces.begin())};
  if (const auto part = parse_part(only)) return part_of(pieces.size(), *part);
  std::vector<std::string> names;
  for (const GridPiece& piece : pieces) names.push_back(piece.name);
  wrong_usage("--only: expected K/N with K from 1 to N, or the name of a run, got ", quote(only),
              did_you_mean(only, names, "; --list-runs lists the names"));
}

/// Trains those runs of a recipe that --only selects. The recipe's table can be made once all runs
/// are finished.
void run_part(const std::vector<GridPiece>& pieces, const Arguments& arguments,
              const RecipeOptions& options) {
  Report report({{"run", "run"}, {"finished", "finished"}});
  bool finished = true;
  for (const std::size_t i : chosen_pieces(pieces, arguments.word("only"))) {
    finished = finished && pieces[i].make();
    report.add({{"run", (options.out / pieces[i].name).string()}, {"finished", finished}});
  }
  report.print(std::cout, arguments.json());
}

/// The settings that must be equal on all ranks that share a recipe's runs.
RankFacts facts_of(const std::string& id, const Arguments& arguments,
                   const RecipeOptions& options) {
  RankFacts facts = program_facts(compute_from(arguments).options.math);
  facts.emplace_back("recipe", id);
  facts.emplace_back("scale", arguments.word("scale"));
  facts.emplace_back("out", options.out.string());
  facts.emplace_back("seed", std::to_string(options.seed));
  facts.emplace_back("seeds", std::to_string(options.seeds));
  for (const auto& [flag, value] : all_taken) facts.emplace_back(flag, options.*value);
  for (const auto& [key, value] : options.settings) {
    if (key != "compute.threads") facts.emplace_back(key, value);
  }
  return facts;
}

/// Trains the missing runs of a recipe on N ranks (processes). Each rank trains every N-th run on
/// its own. Returns false if a run was stopped.
bool run_on_ranks(nn::Communicator& ranks, const std::vector<GridPiece>& pieces) {
  bool finished = true;
  ranks.together([&] {
    const GridPart part{.part = static_cast<std::size_t>(ranks.rank()) + 1,
                        .parts = static_cast<std::size_t>(ranks.size())};
    for (const std::size_t i : part_of(pieces.size(), part)) {
      finished = finished && pieces[i].make();
    }
  });
  return !ranks.any(!finished);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  char digits[16];
  return std::strftime(digits, sizeof digits, "%F", &date) > 0 ? digits : "";
}

/// Links to the reports of the runs in a recipe's folder.
std::string links_to_runs(const std::filesystem::path& folder) {
  std::string links;
  if (!std::filesystem::is_directory(folder)) return links;
  for (const std::filesystem::path& run : runs_below(folder).runs) {
    if (!std::filesystem::exists(run / "report.html")) continue;
    const std::string name = run.lexically_relative(folder).string();
    links += (links.empty() ? "" : ", ") + html::link(name, name + "/report.html");
  }
  return links.empty() ? links : "<p>" + links + "</p>\n";
}

/// The file of the results page that --page requests; empty without --page.
std::filesystem::path page_from(const Arguments& arguments) {
  if (!arguments.given("page")) return {};
  std::filesystem::path page = arguments.word("page");
  if (page.extension() != ".md") {
    wrong_usage("--page: expected a name that ends in .md, got ", quote(page.string()));
  }
  return page;
}

/// The recipe to reproduce and its options.
struct Chosen {
  const Recipe* recipe = nullptr;
  RecipeOptions options;
  std::filesystem::path page;  // the file of the results page that --page requests
};

Chosen chosen_by(const Arguments& arguments, int ranks) {
  const std::string& id = arguments.plain()[0];
  const auto found = recipes().find(id);
  if (found == recipes().end()) {
    std::vector<std::string> known;
    for (const auto& [name, recipe] : recipes()) known.push_back(name);
    wrong_usage("there is no recipe ", quote(id),
                did_you_mean(id, known, "; `longhand repro list` lists them"));
  }
  const Recipe& recipe = found->second;
  const auto scale = scale_from_name(arguments.word("scale"));
  if (!scale || !recipe.scales.contains(*scale)) {
    std::vector<std::string_view> known;
    for (const auto& [one, what] : recipe.scales) known.push_back(name_of(one));
    wrong_usage("--scale: expected a scale of recipe ", id, " (", nn::listed(known), "), got ",
                quote(arguments.word("scale")));
  }
  RecipeOptions options{.scale = *scale, .seed = seed_from(arguments), .out = {}};
  options.control = run_control(arguments);
  options.seeds = arguments.integer("seeds", 0, 1000);
  const auto require_runs = [&](const char* flag) {
    if (recipe.runs || recipe.pieces) return;
    wrong_usage("--", flag, ": recipe ", id, " does not consist of independent runs");
  };
  if (options.seeds > 0) require_runs("seeds");
  for (const auto& [flag, value] : all_taken) {
    if (!arguments.given(flag)) continue;
    if (std::ranges::count(recipe.takes, flag) == 0) {
      wrong_usage("--", flag, ": recipe ", id, " has no such option");
    }
    options.*value = arguments.word(flag);
  }
  std::string folder = id;
  std::replace(folder.begin(), folder.end(), '/', '-');
  options.out = arguments.given("out")
                    ? std::filesystem::path(arguments.word("out"))
                    : std::filesystem::path("runs") / (folder + "-" + arguments.word("scale"));
  for (const char* flag : {"backend", "threads", "math"}) {
    options.settings[std::string("compute.") + flag] = arguments.word(flag);
  }
  if (arguments.given("part_mib")) {
    options.settings["training.part_mib"] =
        std::to_string(arguments.integer("part_mib", 0, largest_part_mib));
  }
  compute_from(arguments).make();  // Reports invalid flags before anything is computed.

  if (ranks > 1 && (arguments.given("only") || (!recipe.runs && !recipe.pieces))) {
    wrong_usage("repro: expected 1 rank ",
                arguments.given("only") ? std::string("with --only")
                                        : text("for ", id, ", which has no independent runs"),
                ", got ", ranks);
  }
  for (const char* flag : {"only", "list-runs"}) {
    if (arguments.given(flag)) require_runs(flag);
  }
  return {&recipe, std::move(options), page_from(arguments)};
}

/// A recipe's result and how it was made.
struct Reproduction {
  const Recipe& recipe;
  const RecipeOptions& options;
  const Arguments& arguments;
  RecipeResult result;
  double seconds;  // duration of the command

  Report table() const {
    const bool confidence = result.bounds == Bounds::confidence;
    Report report({{"row", "model"},
                   {"column", "column"},
                   {"value", "ours", "%.4f"},
                   {"low", confidence ? "95% from" : "worst", "%.4f"},
                   {"high", confidence ? "to" : "best", "%.4f"},
                   {"paper", "paper", "%.4f"}});
    report.set("recipe", recipe.id);
    report.set("scale", arguments.word("scale"));
    report.set("seed", options.seed);
    report.set("commit", commit);
    report.set("seconds", seconds);
    if (result.stopped) report.set("stopped", true);
    const auto figure = [](const std::optional<double>& value) {
      return value ? Json(*value) : Json();
    };
    for (const Row& row : result.rows) {
      if (!row.in_table && !arguments.json()) continue;
      report.add({{"row", row.row},
                  {"column", row.column},
                  {"value", row.value},
                  {"low", figure(row.low)},
                  {"high", figure(row.high)},
                  {"paper", figure(row.paper)}});
    }
    return report;
  }

  /// The command that makes the result again.
  std::string command() const {
    std::string line = text("longhand repro ", recipe.id, " --scale ", arguments.word("scale"),
                            " --seed ", arguments.word("seed"));
    if (options.seeds > 0) line += text(" --seeds ", options.seeds);
    for (const auto& [flag, value] : all_taken) {
      if (!(options.*value).empty()) line += text(" --", flag, ' ', options.*value);
    }
    return line + " --backend " + arguments.word("backend") + " --math " + arguments.word("math");
  }

  html::Page page() const {
    html::Page page(recipe.id, recipe.summary);
    if (!result.has_table) {
      page.add("Ours beside the paper's", comparison_table(recipe.id, result.rows));
    }
    for (const auto& [heading, content] : result.sections) page.add(heading, content);
    page.add("How to make it again",
             html::code(command()) +
                 html::paragraph(text("scale ", arguments.word("scale"), ", seed ", options.seed,
                                      ", commit ", commit, ", ", machine(), ", ",
                                      static_cast<std::int64_t>(seconds), " s")));
    if (const std::string links = links_to_runs(options.out); !links.empty()) {
      page.add("Runs", links);
    }
    return page;
  }

  /// States how the numbers of a results page were made, with the number of seeds and the hours of
  /// all runs. For a recipe without runs, these are the command's --seeds and duration.
  Provenance provenance() const {
    std::set<std::uint64_t> seeds;
    double trained = 0;
    for (const std::filesystem::path& path : result.runs) {
      const RunSummary run = summarize(path);
      seeds.insert(run.config.training().seed);
      trained += run.seconds;
    }
    return {.recipe = recipe.id,
            .summary = recipe.summary,
            .scale = arguments.word("scale"),
            .command = command(),
            .commit = std::string(commit),
            .date = today(),
            .machine = machine(),
            .seed = seeds.empty() ? options.seed : *seeds.begin(),
            .seeds = seeds.empty() ? std::max<std::int64_t>(1, options.seeds) : std::ssize(seeds),
            .hours = (seeds.empty() ? seconds : trained) / 3600};
  }
};

/// Writes the report of a result and the requested results page, and prints the table.
void present(const Reproduction& made, const std::filesystem::path& results_page) {
  const RecipeResult& result = made.result;
  const auto file = made.options.out / "report.html";
  const bool reported = !result.stopped || result.partial;
  if (reported) {
    // The folder may be missing if all runs were reused from other recipes.
    std::filesystem::create_directories(made.options.out);
    write_atomically(file, made.page().render());
  }
  if (!results_page.empty() && !result.stopped) {
    write_results_page(results_page, made.provenance(), result);
  }
  made.table().print(std::cout, made.arguments.json());
  if (made.arguments.json()) return;
  if (reported) std::cout << "report: " << printable(file.string()) << '\n';
  if (result.stopped) std::cout << "stopped; the same command continues\n";
}

/// Checks that all ranks reproduce the same recipe, and divides the threads of the machine among
/// them.
void prepare_ranks(nn::Communicator& ranks, const Arguments& arguments, Chosen& chosen) {
  require_same(ranks, facts_of(chosen.recipe->id, arguments, chosen.options));
  RunControl& control = chosen.options.control;
  control.threads = threads_of_rank(ranks, static_cast<int>(arguments.integer("threads", 0, 1024)));
  control.quiet = control.quiet || ranks.rank() != 0;
}

void run_among(nn::Communicator& ranks, const Arguments& arguments) {
  ranks.together([&] {
    if (arguments.plain().size() != 1) wrong_usage("expected the name of a recipe, or \"list\"");
  });
  const bool several = ranks.size() > 1, first = ranks.rank() == 0;
  if (arguments.plain()[0] == "list") {
    if (first) list(arguments.json());
    return;
  }
  Chosen chosen;
  ranks.together([&] { chosen = chosen_by(arguments, ranks.size()); });
  if (several) prepare_ranks(ranks, arguments, chosen);
  const auto& [recipe, options, page] = chosen;
  if (arguments.flag("list-runs")) {
    if (first) list_runs(*recipe, options, arguments.json());
    return;
  }
  if (arguments.given("only")) return run_part(pieces_of(*recipe, options), arguments, options);

  const auto start = std::chrono::steady_clock::now();
  if (several) {
    const bool finished = run_on_ranks(ranks, pieces_of(*recipe, options));
    if (!first) return;
    if (!finished) {
      if (arguments.json()) {
        std::cout << Json{{"recipe", recipe->id},
                          {"scale", arguments.word("scale")},
                          {"stopped", true}}
                  << '\n';
      } else {
        std::cout << "stopped; the same command continues\n";
      }
      return;
    }
  }
  RecipeResult result = recipe->run(options);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!result.runs.empty()) {
    result.sections.emplace_back("Configurations of the runs",
                                 html::code(configurations(result.runs)));
  }
  present({*recipe, options, arguments, std::move(result), seconds}, page);
}

void run(const Arguments& arguments) {
  on_ranks([&](nn::Communicator& ranks) { run_among(ranks, arguments); });
}

const Register command{
    {.name = "repro",
     .summary = "reproduces a table or figure of a paper, and compares it with the paper",
     .usage = {"list", "RECIPE [--scale smoke|laptop|extended|paper] [--out DIR]",
               "RECIPE --list-runs", "RECIPE --page FILE.md", "RECIPE --only K/N|NAME [--out DIR]"},
     .options = join(
         join(compute_options(), run_control_options()),
         {{"scale", "NAME", "size of the experiment: smoke, laptop, extended or paper", "smoke"},
          {"out", "DIR", "folder for runs and report; default: runs/RECIPE-SCALE"},
          {"page", "FILE.md",
           "also write a results page: a Markdown file, a JSON file and figures"},
          {"part_mib", "N", "maximum size of a checkpoint file, in MiB; 0: no limit", "0"},
          {"seeds", "N", "number of seeds per model; 0: the default of the scale", "0"},
          {"list-runs", "", "list the runs and their floating-point operations; train nothing"},
          {"model", "RUN",
           "recipes chacal/table3 and attentionspan/*: trained or imported run to use"},
          {"text", "FILE", "recipe chacal/table3: text to train on"},
          {"heads", "KIND",
           "recipe chacal/table3: heads to insert into the model; default: chacal"},
          {"optimizer", "NAME",
           "optimizer settings of the recipes attentionspan/*: published or text; published: "
           "settings of the authors' program; text: settings in the text of the paper; "
           "default: published"},
          {"mechanisms", "LIST",
           "recipes matrix and attentionspan/mechanisms: mechanisms to train, such as rope,fal"},
          {"tasks", "LIST",
           "recipes matrix, fal/table1 and attentionspan/*: tasks to train, such as "
           "flip-flop,recall; the recipe matrix also accepts folders with your own files, "
           "such as my-task/"},
          {"only", "K/N|NAME",
           "train every Nth run, starting with run K, or only the run NAME; write no results "
           "table"},
          json_option()}),
     .examples = {"repro list", "repro fal/table1 --scale smoke",
                  "repro chacal/table1 --scale laptop --only 2/6",
                  "repro matrix --mechanisms rope,fal --tasks flip-flop,copying"},
     .notes =
         "RECIPE is an experiment, such as fal/table1 for table 1 of the First-After-Last paper.\n"
         "A recipe trains its runs in the folder --out and computes the results from them. If\n"
         "the folder already contains runs, finished runs are reused and unfinished runs are\n"
         "resumed. Not every recipe has every scale. The help of some options begins with the\n"
         "recipes that accept the option.\n"
         "`mpirun -np N longhand repro ...` distributes the runs over N processes. Each\n"
         "process trains one run at a time, and the first process prints the results.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::repro_command
