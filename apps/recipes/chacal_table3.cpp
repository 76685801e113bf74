#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "apps/html/chart.h"
#include "apps/recipes/chacal.h"
#include "apps/run/evaluation.h"
#include "apps/run/run_report.h"
#include "core/error.h"

/// ChaCAL, Table 3: a language model with standard attention is trained further, once unchanged and
/// once with its heads replaced.
namespace longhand::app::chacal_table3 {
namespace {

/// Sizes of the small byte-level language model that is trained if no model is given.
constexpr ScaledSetting base_sizes[] = {
    {"model.width", "64", "128", ""},      {"model.inner", "256", "512", ""},
    {"model.layers", "2", "4", ""},        {"model.heads", "softmax:4", "softmax:4", ""},
    {"training.steps", "300", "2000", ""}, {"training.batch", "16", "16", ""},
    {"training.rate", "4e-3", "2e-3", ""}, {"training.warm_up", "50", "200", ""},
    {"task.length", "128", "256", ""},     {"training.evaluate_samples", "100", "500", ""}};

/// Settings of the continued training. They are the same for the model with unchanged heads and for
/// the model with replaced heads.
constexpr ScaledSetting tuning[] = {{"training.schedule", "cosine", "cosine", "linear"},
                                    {"training.steps", "100", "500", "10000"},
                                    {"training.batch", "16", "16", "256"},
                                    {"training.accumulation", "", "", "32"},
                                    {"training.rate", "1e-3", "5e-4", "5e-5"},
                                    {"training.warm_up", "20", "100", "2000"},
                                    {"training.evaluate_every", "", "100", "1000"},
                                    {"training.checkpoint_every", "", "", "500"},
                                    {"training.evaluate_samples", "100", "500", "2000"}};

/// Training settings that replace the defaults of the task `text`. They are the defaults of all
/// other tasks. Our published results of this recipe were made with them.
const Settings common{{"training.schedule", "linear"},
                      {"training.warm_up", "100"},
                      {"training.clip", "0"},
                      {"training.evaluate_minutes", "0"}};

constexpr std::array<std::int64_t, 3> scored_windows{200, 2000, 2000};

/// Replaces each softmax head in a list of heads by the kind `wanted`. If `wanted` is itself a list
/// of heads, returns `wanted`.
std::string with_heads(std::string heads, const std::string& wanted) {
  if (wanted.find(':') != std::string::npos) return wanted;
  constexpr std::string_view standard = "softmax:";
  const std::string other = wanted + ":";
  for (std::size_t at = heads.find(standard); at != std::string::npos;
       at = heads.find(standard, at + other.size())) {
    heads.replace(at, standard.size(), other);
  }
  return heads;
}

/// The runs of one seed. The folder `base` contains the initial model, which two runs train
/// further: the run `standard` with unchanged heads, and the run `changed` with replaced heads.
struct Runs {
  std::filesystem::path base;
  // The run that trains the initial model. Empty if the user gives this model (--model).
  std::vector<GridRun> first;
  GridRun standard, changed;
  // The heads of the run `changed`: a kind that replaces the softmax heads, such as "chacal", or a
  // complete list of heads.
  std::string heads;

  std::vector<GridRun> all() const {
    std::vector<GridRun> runs = first;
    runs.push_back(standard);
    runs.push_back(changed);
    return runs;
  }
};

Runs runs_of(const RecipeOptions& options, std::int64_t number) {
  LONGHAND_CHECK(!options.text.empty(),
                 "chacal/table3: expected a text for training (--text FILE); scripts/fetch_text.sh "
                 "FILE writes a text of 11 MB");
  LONGHAND_CHECK(options.scale != Scale::paper || !options.model.empty(),
                 "chacal/table3: --scale paper needs GPT-2 (--model RUN); `longhand import DIR "
                 "--out RUN` converts the files of a model to a run");
  const auto finish = [&](Config& config) {
    config.set("training.decay", "0.1");
    config.set("task.text", options.text);
    set_seed(config, options, number);
    set_all(config, options.settings);
  };
  const std::string of_seed =
      number == 0 ? "" : text("-seed-", options.seed + static_cast<std::uint64_t>(number));
  std::vector<GridRun> first;
  std::filesystem::path from = options.model;
  if (options.model.empty()) {
    from = options.out / ("pre-trained" + of_seed);
    Config config = recipe_config("text");
    set_all(config, common);
    set_all(config, chacal_gpt2);
    set_all(config, base_sizes, options.scale);
    set_all(config, {{"training.schedule", "cosine"}, {"training.clip", "1"}});
    finish(config);
    first.push_back({"pre-trained" + of_seed, std::move(config)});
  }
  const Config base = first.empty() ? RunFolder(from).config() : first[0].config;

  Config standard = recipe_config(base, "text");
  set_all(standard, common);
  set_all(standard, tuning, options.scale);
  standard.set("training.beta2", "0.98");
  finish(standard);
  if (options.scale == Scale::paper) {
    const std::int64_t longest = std::min<std::int64_t>(1024, base.model(*base.task()).longest);
    standard.set("task.length", std::to_string(longest - 1));
  }
  const std::string heads = options.heads.empty() ? "chacal" : options.heads;
  Config changed = standard;
  changed.set("model.heads", with_heads(standard.text("model.heads"), heads), "--heads");
  changed.check();
  LONGHAND_CHECK(changed.text("model.heads") != standard.text("model.heads"),
                 "chacal/table3: --heads: expected heads that differ from those of the model, got "
                 "the model's own heads, ",
                 standard.text("model.heads"));
  const std::string of = first.empty() ? "-from-" + mark_of(from) : "";
  std::string name = "fine-tuned-" + heads + of;
  std::ranges::replace_if(
      name, [](char c) { return std::string_view(":,;()=/").find(c) != std::string_view::npos; },
      '-');
  return {from,
          std::move(first),
          {"fine-tuned-standard" + of + of_seed, std::move(standard), from},
          {name + of_seed, std::move(changed), from},
          heads};
}

using Losses = std::vector<LossSum>;

Losses losses_of(const std::filesystem::path& path, const Config& of, const RecipeOptions& options,
                 std::optional<std::int64_t> step) {
  const LoadedRun loaded = load_run(path, {.step = step,
                                           .compute = {{"backend", of.text("compute.backend")},
                                                       {"threads", of.text("compute.threads")},
                                                       {"math", of.text("compute.math")}}});
  return evaluate_losses(
      *loaded.model, *of.task("validation"),
      {.samples = scored_windows[static_cast<std::size_t>(options.scale)], .seed = options.seed});
}

/// A mean loss per token, with half the width of its 95% interval. The samples are windows of text,
/// not single tokens. The mean is therefore a ratio of two sums over windows: the loss and the
/// number of tokens. Its interval is that of a ratio estimate.
struct Mean {
  double mean = 0, half = 0;
};
Mean mean_of(const Losses& losses) {
  LossSum all;
  for (const LossSum& one : losses) all = {all.sum + one.sum, all.weight + one.weight};
  double squares = 0;
  for (const LossSum& one : losses) {
    const double off = one.sum - all.mean() * one.weight;
    squares += off * off;
  }
  const auto count = static_cast<double>(losses.size());
  const double spread = count > 1 ? std::sqrt(squares * count / (count - 1)) / all.weight : 0;
  return {all.mean(), 1.96 * spread};
}

Losses difference(Losses of, const Losses& from) {
  for (std::size_t i = 0; i < of.size(); ++i) of[i].sum -= from[i].sum;
  return of;
}

std::vector<Runs> all_runs(const RecipeOptions& options) {
  std::vector<Runs> all;
  for (std::int64_t number = 0; number < seeds_of(options, 1, 3, 1); ++number) {
    all.push_back(runs_of(options, number));
  }
  return all;
}

std::vector<GridPiece> pieces(const RecipeOptions& options) {
  std::vector<GridPiece> all;
  for (const Runs& runs : all_runs(options)) {
    const std::vector<GridRun> trained = runs.all();
    all.push_back({trained.front().name, trained,
                   [trained, options] { return train_runs(trained, options); }});
  }
  return all;
}

/// Losses of one seed's models on the same windows of text. `before` is measured before the
/// continued training. `standard` and `changed` are measured after it, with unchanged and with
/// replaced heads.
struct Scored {
  Losses before, standard, changed;
};

Scored score(const Runs& runs, const RecipeOptions& options) {
  const std::int64_t steps = runs.standard.last_step();
  return {losses_of(runs.base, runs.standard.config, options, {}),
          losses_of(options.out / runs.standard.name, runs.standard.config, options, steps),
          losses_of(options.out / runs.changed.name, runs.changed.config, options, steps)};
}

/// Adds the perplexity of a model, and its loss minus the loss of the model with standard heads
/// after the same training.
void add_model(RecipeResult& result, const std::string& row, std::span<const Scored> seeds,
               Losses Scored::*model, std::optional<double> paper) {
  const std::string perplexity = "Perplexity", beside = "loss beside the fine-tuned one's";
  const auto ratio = paper ? std::optional(std::log(*paper / 20.15)) : std::nullopt;
  if (seeds.size() == 1) {
    const Mean loss = mean_of(seeds[0].*model);
    result.rows.push_back({row, perplexity, std::exp(loss.mean), std::exp(loss.mean - loss.half),
                           std::exp(loss.mean + loss.half), paper});
    const Mean off = mean_of(difference(seeds[0].*model, seeds[0].standard));
    result.rows.push_back({row, beside, off.mean, off.mean - off.half, off.mean + off.half, ratio});
    return;
  }
  std::vector<double> perplexities, differences;
  for (const Scored& scored : seeds) {
    perplexities.push_back(std::exp(mean_of(scored.*model).mean));
    differences.push_back(mean_of(difference(scored.*model, scored.standard)).mean);
  }
  add_row(result, row, perplexity, perplexities, paper);
  add_row(result, row, beside, differences, ratio);
}

RecipeResult run(const RecipeOptions& options) {
  RecipeResult result;
  const std::vector<Runs> all = all_runs(options);
  for (const Runs& runs : all) {
    result.stopped = !train_runs(runs.all(), options);
    if (result.stopped) return result;
  }
  std::vector<Scored> seeds;
  for (const Runs& runs : all) seeds.push_back(score(runs, options));

  const Runs& trained = all.front();
  const Config& settings = trained.standard.config;
  const std::string name = "GPT-2";
  const bool is_chacal = trained.heads == "chacal";
  const std::string changed = name + " + " + (is_chacal ? "ChaCAL" : trained.heads);
  add_model(result, name + " (pre-trained)", seeds, &Scored::before, 23.78);
  add_model(result, name + " (fine-tuned)", seeds, &Scored::standard, 20.15);
  add_model(result, changed + " (fine-tuned)", seeds, &Scored::changed,
            is_chacal ? std::optional(21.46) : std::nullopt);

  html::LineChart chart{.x_label = "step", .y_label = "loss", .series = {}};
  for (const GridRun& one : {trained.standard, trained.changed}) {
    chart.series.push_back(curve(one.name, RunFolder(options.out / one.name).metrics(), "loss"));
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          text("Perplexity is e to the power of the mean loss of a token, over ",
               seeds.front().standard.size(),
               " windows of the held-out part of the text, each of at most ",
               settings.text("task.length"),
               " tokens. The second column is the difference of the losses on the same windows, "
               "with its own interval, in nats per token",
               options.model.empty() ? ". A token is a byte here. The last column is the logarithm "
                                       "of the paper's ratio in nats per token of about 4.3 bytes: "
                                       "0.063 of these are 0.015 per byte, 0.166 are 0.039. "
                                     : ". The last column is the logarithm of the paper's ratio. ",
               seeds.size() == 1 ? "Intervals (95%) are those of the mean over windows."
                                 : how_intervals(std::ssize(seeds)))) +
          html::paragraph(
              options.model.empty()
                  ? "The paper fine-tunes GPT-2 small on OpenWebText, whose tokens have about four "
                    "bytes. Here a small model of the same architecture was first trained on this "
                    "text with standard attention, and its tokens are bytes. Perplexities "
                    "therefore cannot be compared; the order and the signs of the differences "
                    "should agree. Unlike in the paper, the first training has seen the text."
                  : "The paper fine-tunes GPT-2 small on a part of OpenWebText. Figures can agree "
                    "only as far as model and text do."));
  result.sections.emplace_back(
      "Training",
      html::figure(line_chart(chart),
                   text("Loss after the change", seeds.size() == 1 ? "" : ", the first seed")));
  for (const Runs& runs : all) {
    std::ranges::move(run_paths(runs.all(), options), std::back_inserter(result.runs));
  }
  return result;
}

const RegisterRecipe recipe{
    {.id = "chacal/table3",
     .summary = "fine-tuning of a language model with its own heads and with ChaCAL heads",
     .scales = {{Scale::smoke, "a byte-level model, 2 layers of width 64: a minute on 2 cores"},
                {Scale::laptop,
                 "a byte-level model, 4 layers of width 128, three seeds: 20 minutes on one core"},
                {Scale::paper, "imported GPT-2, 10k steps with batch size 256; for a GPU"}},
     .run = run,
     .pieces = pieces,
     .takes = {"model", "text", "heads"}}};

}  // namespace
}  // namespace longhand::app::chacal_table3
