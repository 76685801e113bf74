#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "apps/html/chart.h"
#include "apps/recipes/recipe.h"
#include "apps/recipes/sorting_construction.h"
#include "apps/recipes/sorting_probe.h"
#include "apps/run/probe.h"
#include "core/error.h"
#include "core/rng.h"
#include "nn/models/decode.h"
#include "tasks/tally.h"
#include "tasks/task.h"

/// Task hinting, Theorem 5.1: a two-layer model that sorts by construction, without training.
namespace longhand::app::hinting_theorem51 {
namespace {

constexpr std::int64_t longest = 1000;

/// Draws an input of `length` numbers in random order. The number of distinct values is log-uniform
/// between 1 and `numbers`, so many inputs contain one number hundreds of times.
Tokens draw(std::uint64_t seed, std::int64_t numbers, std::int64_t length, std::int64_t index) {
  Rng rng(seed, Purpose::evaluation, static_cast<std::uint64_t>(length),
          static_cast<std::uint32_t>(index));
  Tokens all(static_cast<std::size_t>(numbers));
  std::iota(all.begin(), all.end(), 1);
  rng.shuffle(all.begin(), all.end());
  const double different = std::exp(rng.uniform() * std::log(static_cast<double>(numbers + 1)));
  const auto from = static_cast<std::uint32_t>(std::min(different, static_cast<double>(numbers)));
  Tokens input;
  for (std::int64_t i = 0; i < length; ++i) input.push_back(all[rng.below(from)]);
  return input;
}

/// The constructed model in one precision on one backend, and the lengths of the inputs that it
/// must sort.
struct Trial {
  std::string name;
  SortingConstruction construction;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<nn::Decoder> model;
  std::vector<std::int64_t> lengths = {};  // the tested lengths, in ascending order
  std::int64_t each = 1;                   // number of sequences per length

  std::vector<std::int64_t> sorted = {};  // number of correctly sorted sequences, per length
};

Trial make_trial(std::shared_ptr<Backend> backend, const std::string& name,
                 const SortingConstruction& construction, DType type) {
  auto model = make_sorting_decoder(*backend, construction, type);
  return {name, construction, std::move(backend), std::move(model)};
}

bool is_sorted(Tokens input, const Tokens& said) {
  std::ranges::sort(input);
  return input == said;
}

/// Sorts all inputs by greedy decoding with a key/value cache, in batches of about 32,768 tokens.
void sort_all(Trial& trial, std::uint64_t seed, bool quiet) {
  struct Case {
    std::size_t length;  // index of the length in trial.lengths
    Tokens input;
  };
  std::vector<Case> waiting;
  std::int64_t tokens = 0;
  trial.sorted.assign(trial.lengths.size(), 0);
  const auto flush = [&] {
    std::vector<Tokens> prompts;
    nn::GenerateOptions options;
    for (const Case& c : waiting) {
      prompts.push_back(c.input);
      prompts.back().push_back(trial.construction.delimiter());
      options.most_each.push_back(static_cast<std::int64_t>(c.input.size()));
    }
    const auto said = generate(*trial.model, prompts, options);
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (is_sorted(waiting[i].input, said[i])) ++trial.sorted[waiting[i].length];
    }
    if (!quiet && !waiting.empty()) {
      std::fprintf(stderr, "%s: up to length %zu\n", trial.name.c_str(),
                   waiting.back().input.size());
    }
    waiting.clear();
    tokens = 0;
  };
  for (std::size_t l = 0; l < trial.lengths.size(); ++l) {
    for (std::int64_t i = 0; i < trial.each; ++i) {
      waiting.push_back({l, draw(seed, trial.construction.numbers, trial.lengths[l], i)});
      tokens += 2 * trial.lengths[l];
      if (tokens >= 32768) flush();
    }
  }
  flush();
}

Row share(const std::string& row, const std::string& column, std::int64_t hits,
          std::int64_t count) {
  const auto h = static_cast<double>(hits), n = static_cast<double>(count);
  const tasks::Interval interval = tasks::wilson(h, n);
  return {row, column, h / n, interval.low, interval.high};
}

/// Adds a row with the share of correctly sorted sequences for each length. If there are many
/// lengths, these rows appear in the JSON only, and the table shows groups of a hundred lengths.
void add_sorted(const Trial& trial, RecipeResult& result) {
  struct Group {
    std::int64_t first, last, hits = 0, count = 0;
  };
  std::vector<Group> groups;
  std::vector<Row> single;
  const bool many = trial.lengths.size() > 20;
  Group all{trial.lengths.front(), trial.lengths.back()};
  for (std::size_t l = 0; l < trial.lengths.size(); ++l) {
    const std::int64_t length = trial.lengths[l];
    if (groups.empty() || (length - 1) / 100 != (groups.back().first - 1) / 100) {
      groups.push_back({length, length});
    }
    for (Group* const group : {&groups.back(), &all}) {
      group->last = length;
      group->hits += trial.sorted[l];
      group->count += trial.each;
    }
    single.push_back(share(text("length ", length), trial.name, trial.sorted[l], trial.each));
    single.back().in_table = !many;
  }
  if (many) {
    for (const Group& group : groups) {
      result.rows.push_back(share(text("lengths ", group.first, " to ", group.last), trial.name,
                                  group.hits, group.count));
    }
  }
  result.rows.push_back(share("all lengths", trial.name, all.hits, all.count));
  result.rows.insert(result.rows.end(), single.begin(), single.end());
}

/// Tests the statements of Theorem 5.1 about the contents of the residual stream, with inputs of
/// the given lengths. Adds the share of positions at which each statement holds. Also adds the
/// smallest lead of each statement, where the lead is the margin by which the statement holds at a
/// position. Returns a chart of the smallest lead against the length.
html::LineChart add_characteristics(Trial& trial, const std::vector<std::int64_t>& lengths,
                                    std::uint64_t seed, RecipeResult& result) {
  html::LineChart chart{.x_label = "length of the input", .y_label = "least lead", .series = {}};
  chart.log_x = true;
  chart.y_low = 0;
  chart.y_high = 1;
  std::vector<Characteristic> all;
  for (const std::int64_t length : lengths) {
    std::vector<Tokens> inputs;
    for (std::int64_t i = 0; i < 3; ++i)
      inputs.push_back(draw(seed + 1, trial.construction.numbers, length, i));
    const auto here = characteristics(*trial.model, inputs, trial.construction.delimiter());
    if (all.empty()) all.resize(here.size());
    chart.series.resize(here.size());
    for (std::size_t k = 0; k < here.size(); ++k) {
      all[k].name = chart.series[k].name = here[k].name;
      all[k].held += here[k].held;
      all[k].positions += here[k].positions;
      all[k].least_lead = std::min(all[k].least_lead, here[k].least_lead);
      chart.series[k].marks = true;
      chart.series[k].points.push_back({static_cast<double>(length), here[k].least_lead});
    }
  }
  for (const Characteristic& c : all) {
    result.rows.push_back(share(c.name, trial.name, c.held, c.positions));
    result.rows.push_back({c.name + ", least lead", trial.name, c.least_lead});
  }
  return chart;
}

/// Adds pictures of the residual stream for the paper's own input, as in its Figures 4.12 to 4.14.
void add_pictures(Backend& backend, RecipeResult& result) {
  const auto construction = SortingConstruction::for_inputs(100, longest);
  const auto model = make_sorting_decoder(backend, construction);
  const tasks::TaskKind& sorting = tasks::task_kind("sorting");
  const auto task = sorting.make(sorting.defaults());  // the numbers 1 to 100
  const Tokens tokens = with_answer({5, 17, 43, 78, 92}, construction.delimiter());
  const auto add = [&](const std::string& heading, std::int64_t position) {
    result.sections.emplace_back(heading, projection_pictures(*model, *task, tokens, position));
  };
  add("Input 5 17 43 78 92: the 43 copies itself", 2);
  add("⊥ says the minimum", 5);
  add("The output number 43: first itself and its successor, then only its successor", 8);
}

struct Sizes {
  std::int64_t numbers;
  // Number of sequences of each length, from 2 to 1000, that are sorted in f32.
  std::int64_t each;
  // in_f64: lengths of the inputs that are sorted in f64; at: lengths at which the statements of
  // the theorem are tested.
  std::vector<std::int64_t> in_f64, at;
};

Sizes sizes_of(Scale scale) {
  const std::vector<std::int64_t> few{2, 3, 4, 5, 10, 20, 50, 100, 200};
  std::vector<std::int64_t> many = few;
  many.insert(many.end(), {500, 1000});
  switch (scale) {
    case Scale::smoke:
      return {32, 1, few, many};
    case Scale::laptop:
      return {100, 1, many, many};
    default:
      return {100, 100, many, many};
  }
}

constexpr const char* what_is_counted =
    "Sorted: the share of sequences that greedy decoding with cached keys and values sorts without "
    "a mistake; intervals are Wilson's, 95%. The number of different numbers in an input is drawn "
    "log-uniformly, up to the whole alphabet, and their repetitions are random. A characteristic "
    "holds at a position if the projections of the state onto a basis are largest for the expected "
    "symbols. Its lead is (smallest expected - largest other) / largest. As printed: with the "
    "appendix's temperature and value maps, whose bases are corrected; the construction then moves "
    "on too early from a number that occurs several times.";

std::string weights_of(const Trial& trial) {
  const nn::DecoderConfig& config = trial.model->config();
  const SortingConstruction& c = trial.construction;
  return text("numbers ", c.numbers, ", inputs of up to ", c.longest, ", width ", config.width,
              ", heads ", nn::text_of(config.mixers), ", inner ", config.inner, ", ",
              trial.model->parameters().count(), " parameters\nbeta ", c.sharpness, ", epsilon ",
              c.successor, ", G ", c.gain);
}

RecipeResult run(const RecipeOptions& options) {
  const Sizes sizes = sizes_of(options.scale);
  const auto construction = SortingConstruction::for_inputs(sizes.numbers, longest);
  const Math math = math_from_name(options.settings.at("compute.math")).value();
  const BackendOptions on{.threads = std::stoi(options.settings.at("compute.threads")),
                          .math = math};
  const std::string& name = options.settings.at("compute.backend");
  const std::string f32 = text(math == Math::bf16 ? "bf16" : "f32", " on ", name);
  RecipeResult result;

  Trial single = make_trial(make_backend(name, on), f32, construction, DType::f32);
  single.lengths = sizes.in_f64;
  if (name != "reference") {
    single.each = sizes.each;
    single.lengths.resize(longest - 1);
    std::iota(single.lengths.begin(), single.lengths.end(), 2);
  }
  save_as_run(*single.model, construction, options.out / "construction");
  sort_all(single, options.seed, options.control.quiet);
  add_sorted(single, result);

  Trial twice = make_trial(make_reference_backend({.threads = on.threads, .math = Math::exact}),
                           "f64 on reference", construction, DType::f64);
  twice.lengths = sizes.in_f64;
  sort_all(twice, options.seed, options.control.quiet);
  add_sorted(twice, result);

  const html::LineChart chart = add_characteristics(single, sizes.at, options.seed, result);
  add_characteristics(twice, {2, 10, 50}, options.seed, result);

  const auto as_printed = SortingConstruction::as_printed(sizes.numbers, longest);
  Trial printed = make_trial(make_backend(name, on), "as printed, " + f32, as_printed, DType::f32);
  printed.lengths = {2, 3, 4, 5, 10, 20, 50, 100};
  printed.each = 20;
  sort_all(printed, options.seed, options.control.quiet);
  add_sorted(printed, result);

  result.sections.emplace_back("Characteristics against length",
                               html::figure(line_chart(chart), "Least lead of what is expected"));
  add_pictures(*single.backend, result);
  result.sections.emplace_back("What is counted", html::paragraph(what_is_counted));
  result.sections.emplace_back("Weights", html::code(weights_of(single)));
  return result;
}

const RegisterRecipe recipe{
    {.id = "hinting/theorem5.1",
     .summary = "two layers that sort by construction, at every length from 2 to 1000",
     .scales = {{Scale::smoke,
                 "32 numbers, a sequence of each length; f64 up to 200: a minute on 2 cores"},
                {Scale::laptop,
                 "the paper's 100 numbers, a sequence of each length; f64 up to 1000"},
                {Scale::paper, "100 sequences of each length; for a GPU"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app::hinting_theorem51
