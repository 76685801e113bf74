#include <algorithm>
#include <iostream>
#include <set>

#include "apps/recipes/grid.h"
#include "apps/recipes/sweep_report.h"
#include "apps/run/halving.h"
#include "apps/run/ranking.h"
#include "apps/run/ranks.h"
#include "apps/run/run_summary.h"
#include "apps/run/training.h"
#include "core/atomic_file.h"
#include "core/nearest.h"
#include "core/quote.h"
#include "nn/training/stop_signals.h"

namespace longhand::app::sweep_command {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_runs = 10'000;

/// Parses one axis of the grid, such as "rate=1e-3,3e-3". If values contain commas, the values are
/// separated by |, as in "heads=softmax:4|softmax:3,fal:1".
GridAxis axis_of(const std::string& word, const Config& config) {
  const std::size_t sign = word.find('=');
  if (sign == std::string::npos) {
    wrong_usage("--grid: expected NAME=VALUE,VALUE..., got ", quote(word));
  }
  GridAxis axis{.name = word.substr(0, sign), .key = {}, .values = {}};
  std::string wanted = axis.name;
  std::ranges::replace(wanted, '-', '_');
  Texts known;
  for (const auto& [key, value] : config.settings()) {
    const std::string flag = key.substr(key.find('.') + 1);
    if (key == wanted || flag == wanted) axis.key = key;
    known.push_back(flag);
  }
  if (axis.key.empty() || axis.key == "task.name" || axis.key == "training.seed") {
    wrong_usage("--grid: there is no setting ", quote(axis.name), did_you_mean(wanted, known));
  }
  const char comma = word.find('|') == std::string::npos ? ',' : '|';
  for (std::size_t begin = sign + 1; begin <= word.size();) {
    const std::size_t end = std::min(word.find(comma, begin), word.size());
    const std::string value = word.substr(begin, end - begin);
    if (value.empty() || std::ranges::count(axis.values, value)) {
      wrong_usage("--grid ", axis.name, ": expected non-empty values without duplicates");
    }
    axis.values.push_back(value);
    begin = end + 1;
  }
  return axis;
}

std::string folder_name(const std::vector<GridAxis>& axes, const GridCell& cell,
                        std::int64_t seed) {
  std::string name;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    name += axes[i].name + "-" + axes[i].values[cell.choice[i]] + "-";
  }
  name += "seed-" + std::to_string(seed);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name;
}

std::vector<GridCell> cells_of(const Config& base, const std::vector<GridAxis>& axes,
                               std::int64_t seeds) {
  std::size_t count = 1;
  for (const GridAxis& axis : axes) count = std::min(most_runs + 1, count * axis.values.size());
  if (count * static_cast<std::size_t>(seeds) > most_runs) {
    wrong_usage("--grid: expected at most ", most_runs, " runs");
  }
  std::vector<GridCell> cells;
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    GridCell cell;
    std::size_t rest = i;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      cell.choice.insert(cell.choice.begin(), rest % axis->values.size());
      rest /= axis->values.size();
    }
    for (std::int64_t k = 0; k < seeds; ++k) {
      Config config = base;
      for (std::size_t a = 0; a < axes.size(); ++a) {
        config.set(axes[a].key, axes[a].values[cell.choice[a]], "--grid " + axes[a].name);
      }
      const std::uint64_t seed = base.training().seed + static_cast<std::uint64_t>(k);
      config.set("training.seed", std::to_string(seed));
      config.check();
      cell.runs.push_back(folder_name(axes, cell, static_cast<std::int64_t>(seed)));
      cell.configs.push_back(std::move(config));
      LONGHAND_CHECK(names.insert(cell.runs.back()).second, cell.runs.back(),
                     ": two runs of the grid would use this folder");
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

bool is_finished(const fs::path& path) {
  return fs::exists(path / "config.ini") && app::is_finished(path, RunFolder(path).config());
}

/// A run's score after a stage of successive halving, which drops the worst settings after each
/// stage. No value if the run has not finished the stage.
std::optional<double> score_of(const fs::path& path, const GridStages& stages, std::size_t stage) {
  if (!fs::exists(path / "config.ini")) return std::nullopt;
  const std::int64_t step = stages.all[stage].steps;
  if (!stages.is_last(stage)) return score_after(path, step, stages.score);
  if (!is_finished(path)) return std::nullopt;
  const std::optional<double> score = score_after(path, step, stages.score);
  LONGHAND_CHECK(score, path.string(), ": the run has no score ", stages.score, " after step ",
                 step, ", the last step");
  return score;
}

/// Trains those runs of one stage of the sweep that have not finished it. Returns false if a signal
/// or the time limit stopped the training.
bool train_stage(const std::vector<GridCell*>& cells, const fs::path& out, GridPart part,
                 const GridStages& stages, std::size_t stage, RunControl control) {
  if (!stages.is_last(stage)) {
    control.to_step = stages.all[stage].steps;
    control.scores_there = true;
  }
  std::vector<std::pair<const Config*, fs::path>> all;
  for (const GridCell* cell : cells) {
    for (std::size_t k = 0; k < cell->runs.size(); ++k) {
      all.emplace_back(&cell->configs[k], out / cell->runs[k]);
    }
  }
  for (const std::size_t i : part_of(all.size(), part)) {
    const auto& [config, path] = all[i];
    // Throws an Error if the folder contains another run.
    std::optional<RunFolder> folder = open_or_create(path, *config);
    if (score_of(path, stages, stage)) continue;
    if (control.is_over()) return false;
    if (!control.quiet) {
      if (stages.all.size() > 1) {
        std::cerr << "stage " << stage + 1 << " of " << stages.all.size() << ", "
                  << stages.all[stage].steps << " steps, ";
      }
      std::cerr << "run " << i + 1 << " of " << all.size() << ": " << path.string() << '\n';
    }
    LONGHAND_CHECK(stages.is_last(stage) || !is_finished(path), path.string(),
                   ": --halving needs a score at step ", stages.all[stage].steps,
                   ", but the run was finished without this score; use a folder that no other "
                   "sweep writes to");
    train(*folder, control);
    folder.reset();  // releases the folder's lock
    if (nn::StopSignals::raised() != 0 || !score_of(path, stages, stage)) return false;
  }
  return true;
}

/// Trains all stages of the sweep. After each stage except the last, waits until all ranks have
/// finished it and drops the cells (combinations of settings) with the worst scores. Returns false
/// if runs are left to another process or to a later call.
bool train_stages(nn::Communicator& ranks, std::vector<GridCell>& cells, const fs::path& out,
                  GridPart part, const GridStages& stages, const RunControl& control) {
  const bool less = tasks::lower_is_better(metric_of(stages.score));
  std::vector<GridCell*> left;
  for (GridCell& cell : cells) left.push_back(&cell);
  for (std::size_t stage = 0; stage < stages.all.size(); ++stage) {
    bool done = false;
    ranks.together([&] { done = train_stage(left, out, part, stages, stage, control); });
    if (ranks.any(!done)) return false;
    std::vector<HalvingScore> judged;
    for (GridCell* cell : left) {
      std::vector<double> losses;
      cell->scores.clear();
      for (const std::string& run : cell->runs) {
        const std::optional<double> score = score_of(out / run, stages, stage);
        if (!score) return false;  // another process trains this run
        cell->scores.push_back(*score);
        losses.push_back(loss_before(out / run, stages.all[stage].steps));
      }
      cell->means.push_back(mean_over(cell->scores).mean);
      judged.push_back({cell->means.back(), mean_over(losses).mean});
    }
    if (stages.is_last(stage)) break;
    std::vector<std::size_t> best = best_of(judged, less, stages.all[stage + 1].settings);
    // Restores the order of the grid, because --only and ranks select runs by their index in it.
    std::ranges::sort(best);
    std::vector<GridCell*> next;
    for (const std::size_t i : best) next.push_back(left[i]);
    left = std::move(next);
  }
  return true;
}

GridStages stages_of(const Arguments& arguments, const Config& base,
                     const std::vector<GridCell>& cells) {
  std::vector<const Config*> runs;
  for (const GridCell& cell : cells) {
    runs.push_back(&cell.configs.front());
    if (runs.back()->training().evaluate_samples == 0) {
      wrong_usage(
          "--evaluate-samples: expected a number above 0, because a sweep ranks runs by their "
          "scores");
    }
  }
  const std::int64_t steps = base.training().schedule.steps;
  GridStages stages{.all = {{.settings = cells.size(), .steps = steps}},
                    .score = common_ranking_score(runs, ranking_from(arguments))};
  if (!arguments.given("halving")) return stages;
  const std::int64_t eta = arguments.integer("halving", 2, 1000);
  stages.all = as_usage("halving", [&] { return halving_stages(cells.size(), eta, steps); });
  return stages;
}

/// A sweep described by command-line flags.
struct Sweep {
  Config base;
  std::vector<GridAxis> axes;
  fs::path out;
  GridPart part;
  std::vector<GridCell> cells;
  GridStages stages;
};

Sweep sweep_of(const Arguments& arguments) {
  Config base = Config::from(arguments);
  std::vector<GridAxis> axes;
  for (const std::string& word : arguments.words("grid")) {
    axes.push_back(axis_of(word, base));
    const auto same = std::ranges::count(axes, axes.back().key, &GridAxis::key);
    if (same > 1) wrong_usage("--grid: the setting ", axes.back().name, " is given twice");
  }
  if (arguments.given("halving") && std::ranges::count(axes, "training.steps", &GridAxis::key)) {
    wrong_usage("--halving cannot be combined with --grid steps=VALUE,VALUE...");
  }
  if (axes.empty()) wrong_usage("--grid is missing: expected NAME=VALUE,VALUE...");
  fs::path out = arguments.word("out");
  GridPart part;
  if (arguments.given("only")) {
    const auto parsed = parse_part(arguments.word("only"));
    if (!parsed) {
      wrong_usage("--only: expected K/N such as 2/8, got ", quote(arguments.word("only")));
    }
    part = *parsed;
  }
  std::vector<GridCell> cells = cells_of(base, axes, arguments.integer("seeds", 1, 1000));
  GridStages stages = stages_of(arguments, base, cells);
  return {std::move(base),  std::move(axes),  std::move(out), part,
          std::move(cells), std::move(stages)};
}

/// The settings that must be equal on all ranks that share a sweep.
RankFacts facts_of(const Arguments& arguments, const Sweep& sweep) {
  RankFacts facts = program_facts(sweep.base.compute().options.math);
  facts.emplace_back("out", sweep.out.string());
  facts.emplace_back("seeds", arguments.word("seeds"));
  for (const std::string& word : arguments.words("grid")) facts.emplace_back("grid", word);
  facts.emplace_back("stages", std::to_string(sweep.stages.all.size()));
  facts.emplace_back("by", sweep.stages.score);
  for (const auto& [key, value] : sweep.base.settings()) {
    if (key != "compute.threads") facts.emplace_back(key, value);
  }
  return facts;
}

void run_among(nn::Communicator& ranks, const Arguments& arguments) {
  std::optional<Sweep> made;
  RunControl control;
  ranks.together([&] {
    if (ranks.size() > 1 && arguments.given("only")) {
      wrong_usage(
          "--only cannot be used on several ranks, because the ranks divide all runs among "
          "themselves");
    }
    made.emplace(sweep_of(arguments));
    control = run_control(arguments);
  });
  Sweep& sweep = *made;
  const bool first = ranks.rank() == 0;
  if (arguments.flag("list-runs")) {
    for (const GridCell& cell : sweep.cells) {
      for (const std::string& name : cell.runs) {
        if (first) std::cout << (sweep.out / name).string() << '\n';
      }
    }
    return;
  }
  if (ranks.size() > 1) {
    require_same(ranks, facts_of(arguments, sweep));
    sweep.part = {.part = static_cast<std::size_t>(ranks.rank()) + 1,
                  .parts = static_cast<std::size_t>(ranks.size())};
    control.threads = threads_of_rank(ranks, control.threads.value_or(0));
    control.quiet = control.quiet || !first;
  }
  ranks.together([&] { Folder::make(sweep.out); });
  const bool finished =
      train_stages(ranks, sweep.cells, sweep.out, sweep.part, sweep.stages, control);
  if (!first) return;
  if (finished) {
    return report_sweep(sweep.base, sweep.axes, std::move(sweep.cells), sweep.stages, sweep.out,
                        arguments.json());
  }
  if (arguments.json()) std::cout << Json{{"out", sweep.out.string()}, {"finished", false}} << '\n';
  if (!arguments.flag("quiet")) {
    std::cerr << "stopped before all runs were finished; the same command continues\n";
  }
}

void run(const Arguments& arguments) {
  on_ranks([&](nn::Communicator& ranks) { run_among(ranks, arguments); });
}

const Register command{
    {.name = "sweep",
     .summary = "trains a run for each combination of settings, and reports the best ones",
     .usage = {"--grid NAME=VALUE,VALUE... [--grid ...] [--seeds N] --out DIR [flags of train]"},
     .options =
         join({{"grid",
                "NAME=LIST",
                "a setting and its values, separated by commas, or by | if values contain commas",
                {},
                true},
               {"seeds", "N", "runs per combination, with the seeds --seed, --seed + 1, ...", "1"},
               {"halving", "N",
                "successive halving: keep the best 1/N of the combinations after each stage"},
               ranking_option("main metric on the first of these distributions that the runs have: "
                              "validation, ood, test distributions"),
               {"out", "DIR", "folder for the runs and report.html"},
               {"config", "FILE", "read settings from this config.ini; flags override them"},
               {"only", "K/N", "train only every Nth run, starting with run K"},
               {"list-runs", "", "print the folders of the runs; train nothing"}},
              join(run_control_options(), join(config_options(), {json_option()}))),
     .examples =
         {"sweep --task sorting --steps 300 --grid rate=1e-3,3e-3 --grid layers=2,4 --seeds 3 "
          "--out runs/sorting-sweep",
          "sweep --task reversal --grid heads='softmax:4|fal:4' --by ood/tokens --out runs/heads",
          "sweep --task sorting --steps 900 --grid rate=1e-4,3e-4,1e-3,3e-3,1e-2 --halving 3 "
          "--out runs/sorting-rates"},
     .notes =
         "Each run is the same as a run of `longhand train` with the same settings. If a sweep\n"
         "was stopped by Ctrl-C or --max-minutes, the same command resumes it.\n"
         "--only divides the runs over N processes, on one or several machines with a shared\n"
         "folder --out. Start the same command N times, with --only 1/N to --only N/N. The\n"
         "process that finishes last writes the report.\n"
         "`mpirun -np N longhand sweep ...` or `srun -n N longhand sweep ...` also distributes\n"
         "the runs over N processes.\n"
         "--halving 3 with nine combinations, for example, trains all nine for 1/9 of the\n"
         "steps, the best three up to 1/3, and the best one up to the end. The learning rate\n"
         "schedule always covers all steps. If scores are equal, the lower loss decides.\n"
         "--halving with --only: a process ends if the next stage needs runs that another\n"
         "process has not finished. Start the processes again until one writes the report.",
     .run = run}};

}  // namespace
}  // namespace longhand::app::sweep_command
