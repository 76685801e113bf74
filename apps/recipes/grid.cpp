#include "apps/recipes/grid.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>
#include <sstream>

#include "apps/run/config_mixers.h"
#include "apps/run/run_summary.h"
#include "apps/run/training.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/safetensors_checksums.h"
#include "core/safetensors_parts.h"
#include "nn/text/token_file.h"
#include "nn/training/stop_signals.h"
#include "tasks/statistics.h"
#include "tasks/text_vocabulary.h"

namespace longhand::app {
namespace fs = std::filesystem;

namespace {

/// Checksum of the files of a tokenizer; 0 if `tokenizer` is not a path but a built-in tokenizer.
std::uint32_t sum_of(const std::string& tokenizer) {
  return tasks::names_tokenizer(tokenizer) ? nn::tokenizer_sum(tokenizer) : 0;
}

/// Describes the first setting in which a run differs from the wanted configuration. Empty if there
/// is no difference. Settings that do not change the results are ignored: the time between
/// checkpoints, the size of checkpoint files and the number of threads. Tokenizers are compared by
/// content, because a run contains its own copy.
std::string difference(Config run, const Config& wanted) {
  for (const char* key : {"training.checkpoint_minutes", "training.part_mib", "compute.threads"}) {
    run.set(key, wanted.text(key));
  }
  const std::string tokenizer = "task.tokenizer";
  if (run.knows(tokenizer) && wanted.knows(tokenizer) &&
      sum_of(run.text(tokenizer)) == sum_of(wanted.text(tokenizer))) {
    run.set(tokenizer, wanted.text(tokenizer));
  }
  for (const auto& [key, value] : wanted.settings()) {
    if (same_setting(run, wanted, key)) continue;
    const std::string there = run.knows(key) ? run.text(key) : "missing";
    return text(key, " is ", quote(there), " there and ", quote(value), " here");
  }
  return "";
}

bool same_run(const Config& run, const Config& wanted) { return difference(run, wanted).empty(); }

/// True if the folder contains this run and the run is finished. The run may have been trained on
/// another backend, for example on a machine with a GPU.
bool finished(const fs::path& path, const GridRun& run) {
  if (!fs::exists(path / "config.ini")) return false;
  Config config = RunFolder(path).config();
  config.set("compute.backend", run.config.text("compute.backend"));
  return same_run(config, run.config) && is_finished(path, run.config);
}

}  // namespace

std::int64_t GridRun::last_step() const { return config.training().schedule.steps; }
std::int64_t GridRun::evaluate_samples() const { return config.training().evaluate_samples; }

Recipe grid_recipe(GridRecipe grid) {
  Recipe recipe{.id = grid.id, .summary = grid.summary, .scales = grid.scales, .run = {}};
  recipe.runs = grid.runs;
  recipe.takes = grid.takes;
  recipe.run = [grid = std::move(grid)](const RecipeOptions& options) {
    RecipeResult result;
    const std::vector<GridRun> runs = grid.runs(options);
    result.stopped = !train_runs(runs, options, grid.reuse_from);
    if (result.stopped) return result;
    grid.report(options, result);
    result.runs = run_paths(runs, options, grid.reuse_from);
    return result;
  };
  return recipe;
}

std::string ScaledSetting::at(Scale scale) const {
  switch (scale) {
    case Scale::smoke:
      return smoke;
    case Scale::laptop:
      return laptop;
    case Scale::paper:
      return paper;
    case Scale::extended:
      break;
  }
  return extended ? extended : laptop;
}

Config recipe_config(std::string_view task) {
  Config config(task);
  config.set("training.rate_at", "end");
  return config;
}

Config recipe_config(const Config& run, std::string_view task) {
  Config config = Config::from_run(run, task);
  config.set("training.rate_at", "end");
  return config;
}

void set_all(Config& config, std::span<const ScaledSetting> settings, Scale scale) {
  for (const ScaledSetting& s : settings) {
    const std::string value = s.at(scale);
    if (!value.empty()) config.set(s.key, value);
  }
}

void set_all(Config& config, const Settings& settings) {
  for (const auto& [key, value] : settings) config.set(key, value);
}

std::uint64_t set_seed(Config& config, const RecipeOptions& options, std::int64_t number) {
  const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(number);
  config.set("training.seed", std::to_string(seed));
  return seed;
}

RunFolder open_or_create(const fs::path& path, const Config& config,
                         const std::optional<fs::path>& start,
                         std::optional<std::int64_t> start_step) {
  if (!fs::exists(path / "config.ini")) {
    if (!start) return RunFolder::create(path, config);
    const RunFolder from(*start);
    return RunFolder::create(
        path, config, nn::CheckpointStore(from.checkpoints(), 1).path(find_step(from, start_step)));
  }
  RunFolder folder(path);
  const std::string other = difference(folder.config(), config);
  LONGHAND_CHECK(other.empty(), path.string(),
                 ": the folder holds a run with another configuration: ", other);
  return folder;
}

fs::path run_path(const GridRun& run, const RecipeOptions& options,
                  std::span<const std::string_view> reuse_from) {
  for (const std::string_view recipe : reuse_from) {
    std::string folder = text(recipe, '-', name_of(options.scale));
    std::replace(folder.begin(), folder.end(), '/', '-');
    const fs::path path = options.out.parent_path() / folder / run.name;
    if (finished(path, run)) return path;
  }
  return options.out / run.name;
}

std::vector<fs::path> run_paths(std::span<const GridRun> runs, const RecipeOptions& options,
                                std::span<const std::string_view> reuse_from) {
  std::vector<fs::path> paths;
  for (const GridRun& run : runs) paths.push_back(run_path(run, options, reuse_from));
  return paths;
}

LoadedRun load_finished(const GridRun& run, const RecipeOptions& options,
                        std::span<const std::string_view> reuse_from) {
  return load_run(
      run_path(run, options, reuse_from),
      {.step = run.last_step(), .compute = {{"backend", run.config.text("compute.backend")}}});
}

bool train_runs(std::span<const GridRun> runs, const RecipeOptions& options,
                std::span<const std::string_view> reuse_from) {
  for (const GridRun& run : runs) {
    const fs::path path = run_path(run, options, reuse_from);
    if (finished(path, run)) continue;
    if (options.control.is_over()) return false;
    RunFolder folder = open_or_create(path, run.config, run.start, run.start_step);
    if (!train(folder, options.control).finished || nn::StopSignals::raised()) return false;
  }
  return true;
}

std::string mark_of(const fs::path& path) {
  const RunFolder run(path);
  const nn::CheckpointStore store(run.checkpoints(), 1);
  const auto model = SafetensorsParts::open(store.path(find_step(run, {})), "model");
  std::uint32_t sum = 0;
  for (const SafetensorsFile& file : model.files()) {
    for (const SafetensorsEntry& entry : file.entries()) sum = crc32c(entry.bytes, sum);
  }
  return checksums::hexadecimal(sum);
}

std::optional<GridPart> parse_part(std::string_view text) {
  GridPart part;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, part.part);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, part.parts);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  if (part.part < 1 || part.part > part.parts) return std::nullopt;
  return part;
}

std::vector<std::size_t> part_of(std::size_t count, GridPart part) {
  std::vector<std::size_t> chosen;
  // The limit `count` prevents an overflow of i + stride.
  const std::size_t stride = std::min(part.parts, count);
  for (std::size_t i = part.part - 1; i < count; i += stride) chosen.push_back(i);
  return chosen;
}

std::vector<GridRun> part_of(std::span<const GridRun> runs, GridPart part) {
  std::vector<GridRun> chosen;
  for (const std::size_t i : part_of(runs.size(), part)) chosen.push_back(runs[i]);
  return chosen;
}

MeanOverRuns mean_over(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  MeanOverRuns result{std::accumulate(values.begin(), values.end(), 0.0) / std::max(1.0, count)};
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const double half =
      tasks::student_quantile(0.05, count - 1) * std::sqrt(squares / (count - 1) / count);
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

std::int64_t seeds_of(const RecipeOptions& options, std::int64_t smoke, std::int64_t laptop,
                      std::int64_t paper) {
  if (options.seeds > 0) return options.seeds;
  return options.scale == Scale::smoke ? smoke : options.scale == Scale::paper ? paper : laptop;
}

Row row_of(const std::string& row, const std::string& column, std::span<const double> values,
           std::optional<double> paper, std::int64_t of) {
  const MeanOverRuns mean = mean_over(values);
  Row result{row, column, mean.mean, mean.low, mean.high, paper};
  if (of == 0) return result;  // the values are not shares
  if (values.size() == 1) {
    const auto count = static_cast<double>(of);
    const tasks::Interval interval = tasks::wilson(mean.mean * count, count);
    result.low = interval.low;
    result.high = interval.high;
  } else if (result.low) {
    result.low = std::max(0.0, *result.low);
    result.high = std::min(1.0, *result.high);
  }
  return result;
}

Row add_row(RecipeResult& result, const std::string& row, const std::string& column,
            std::span<const double> values, std::optional<double> paper, std::int64_t of) {
  Row mean = row_of(row, column, values, paper, of);
  result.rows.push_back(mean);
  for (std::size_t i = 0; values.size() > 1 && i < values.size(); ++i) {
    Row single = row_of(row, text(column, ", run ", i + 1), values.subspan(i, 1), {}, of);
    single.in_table = false;
    result.rows.push_back(std::move(single));
  }
  return mean;
}

std::string how_intervals(std::int64_t runs) {
  if (runs == 1) return "Intervals are Wilson's, 95%.";
  return text("Figures are means over ", runs,
              " runs with different seeds; intervals are those of the mean (95%, Student's t).");
}

std::string differences(const Config& from, const Config& config) {
  std::istringstream before(from.ini()), after(config.ini());
  std::string all, section, line, old;
  while (std::getline(after, line) && std::getline(before, old)) {
    if (line.starts_with("[")) section = line.substr(1, line.size() - 2) + ".";
    if (line != old) all += section + line + "\n";
  }
  return all;
}

std::string configurations(std::span<const fs::path> runs) {
  std::map<std::string, Config> first;  // key: name of the task
  std::string all;
  for (const fs::path& path : runs) {
    const Config config = RunFolder(path).config();
    const auto [of_task, is_first] = first.try_emplace(config.kind().name, config);
    all += "# " + path.filename().string();
    all += is_first ? "\n" + config.ini() + "\n"
                    : ", as " + of_task->first + "'s first but for\n" +
                          differences(of_task->second, config) + "\n";
  }
  return all;
}

}  // namespace longhand::app
