#include <algorithm>

#include "apps/html/chart.h"
#include "apps/recipes/hinting.h"
#include "apps/run/probe.h"
#include "core/error.h"

/// Task hinting, section 4: the contents of a sorting model's residual stream.
namespace longhand::app::hinting_probes {
namespace {

const std::map<Scale, std::string> scales{
    {Scale::smoke, "runs of the other recipes at this scale, trained if missing"},
    {Scale::laptop, "the same with its small models"},
    {Scale::paper, "the paper's sizes; for a GPU"}};

// The recipe of Figures 4.12 to 4.14: products of the residual stream with the vectors of tokens.

/// The paper's input 5 17 43 78 92. Its numbers from 1 to 100 are scaled to the task's range from 1
/// to `numbers`.
std::vector<std::int32_t> paper_input(std::int64_t numbers) {
  std::vector<std::int32_t> input;
  for (const std::int64_t number : {5, 17, 43, 78, 92}) {
    input.push_back(static_cast<std::int32_t>((number * numbers + 99) / 100));
  }
  return input;
}

/// Loads a model's runs of all seeds.
std::vector<LoadedRun> load_runs(const HintingModel& model, const RecipeOptions& options) {
  std::vector<LoadedRun> runs;
  for (std::int64_t number = 0; number < hinting_seeds(options); ++number) {
    runs.push_back(load_hinting(model, options, number));
  }
  return runs;
}

/// The paper's input and its sorted output, as read by the models of all runs. `tokens` are the
/// input, the delimiter and the output.
struct ReadInput {
  std::vector<LoadedRun> runs;
  std::vector<std::int32_t> numbers, tokens;
  // For each run, the model's bases (the rows of its embedding and of its output layer) and the
  // products of the residual stream with them.
  std::vector<Bases> bases = {};
  std::vector<std::vector<Projection>> projections = {};

  const LoadedRun& first() const { return runs.front(); }
};

ReadInput read_input(const RecipeOptions& options) {
  std::vector<LoadedRun> runs = load_runs(HintingModel(), options);
  const LoadedRun& first = runs.front();
  const auto numbers = paper_input(first.config.task_values().integer("numbers", 1, 1 << 20));
  std::vector<std::int32_t> tokens = numbers;
  tokens.push_back(first.task->vocabulary().encode("⊥")[0]);
  tokens.insert(tokens.end(), numbers.begin(), numbers.end());
  ReadInput read{.runs = std::move(runs), .numbers = numbers, .tokens = tokens};
  const nn::Batch batch{.tokens = tokens, .lengths = {static_cast<std::int32_t>(tokens.size())}};
  for (const LoadedRun& run : read.runs) {
    read.bases.push_back(bases_of(*run.model));
    read.projections.push_back(project(*run.model, batch, read.bases.back()));
  }
  return read;
}

/// The dot product of the residual stream with the vector of the vocabulary entry `token`. The
/// stream is measured at one position of the sequence, after a layer's attention or after its
/// feed-forward layer.
struct Product {
  std::int64_t position;
  std::int32_t token;
  std::int64_t layer;
  StreamPlace place;
  bool encoder;  // true: the vector is a row of the embedding; false: of the output layer

  /// Compares this product with the products of the same row of the stream and the vectors of all
  /// other vocabulary entries. Returns its rank, which is 1 for the largest product.
  double rank_in(const std::vector<Projection>& projections) const {
    const Projection& projection =
        projections[static_cast<std::size_t>(2 * layer) + (place == StreamPlace::after_mlp)];
    const Tensor& products = encoder ? projection.encoder : projection.decoder;
    const auto values = products.to_doubles();
    const auto row = values.begin() + position * products.columns();
    return static_cast<double>(1 + std::count_if(row, row + products.columns(),
                                                 [&](double value) { return value > row[token]; }));
  }
};

/// Adds a table row with the rank of a product in each run.
void add_ranks(RecipeResult& result, const ReadInput& read, const Product& product) {
  std::vector<double> ranks;
  for (const auto& projections : read.projections) ranks.push_back(product.rank_in(projections));
  const std::size_t mean = result.rows.size();
  add_row(result,
          text("position ", product.position, ", layer ", product.layer,
               product.place == StreamPlace::before_mlp ? " before" : " after", " the MLP, ",
               product.encoder ? "encoder" : "decoder",
               " basis: ", read.first().task->vocabulary().text(product.token)),
          "rank", ranks, {});
  for (std::size_t r = mean; r < result.rows.size(); ++r) {
    // The intervals are removed, because the interval of a mean rank may start below 1.
    result.rows[r].low = result.rows[r].high = {};
    result.rows[r].whole = ranks.size() == 1 || r > mean;
  }
}

void add_cosines(RecipeResult& result, const std::string& row, const Cosines& cosines) {
  for (const auto& [column, value] :
       {std::pair{"mean |cos|", cosines.mean}, {"largest |cos|", cosines.largest}}) {
    result.rows.push_back({.row = row, .column = column, .value = value, .in_table = false});
  }
}

/// Adds a picture of the products of the first run's residual stream, at one position, with the
/// vectors of all tokens.
void add_picture(RecipeResult& result, const ReadInput& read, std::int64_t position,
                 const std::string& name, const std::string& what) {
  result.sections.emplace_back(
      name,
      html::paragraph(
          what +
          ". The figure shows products of the residual stream with the rows of the embedding "
          "(encoder basis) and of the output layer (decoder basis), with one bar per token.") +
          projection_pictures(*read.first().model, *read.first().task, read.tokens, position));
}

/// Adds the results of Figures 4.12 to 4.14, which are based on products of the residual stream
/// with the vectors of vocabulary entries. For every run, adds the ranks of some products among
/// those of all entries. For the first run, also adds pictures of the products.
void projections(const RecipeOptions& options, RecipeResult& result) {
  const ReadInput read = read_input(options);
  const std::int32_t least = read.numbers[0], middle = read.numbers[2], next = read.numbers[3];
  for (const Product& product : {Product{2, middle, 0, StreamPlace::before_mlp, true},
                                 {8, middle, 1, StreamPlace::before_mlp, false},
                                 {8, next, 1, StreamPlace::before_mlp, false},
                                 {8, next, 1, StreamPlace::after_mlp, false},
                                 {5, least, 0, StreamPlace::before_mlp, false}}) {
    add_ranks(result, read, product);
  }
  const Bases& bases = read.bases.front();
  add_cosines(result, "encoder basis", cosines_within(bases.encoder));
  add_cosines(result, "decoder basis", cosines_within(bases.decoder));
  add_cosines(result, "encoder with decoder", cosines_between(bases.encoder, bases.decoder));

  result.sections.emplace_back("Near-orthogonality", bases_table(bases));
  add_picture(result, read, 2, text("token ", middle, " at position 2"),
              "Figure 4.12: in the input, a copy of itself");
  add_picture(result, read, 8, text("token ", middle, " at position 8"),
              text("Figure 4.13: in the output, itself and its successor ", next));
  add_picture(result, read, 5, "delimiter at position 5",
              text("Figure 4.14: the delimiter, the least number ", least));
  const std::size_t runs = read.runs.size();
  add_notes(
      result,
      html::paragraph(text(
          "Input ", read.first().task->vocabulary().decode({read.tokens.begin(), 6}),
          " and its sorted output. Each row of the table states where in the network the product "
          "with a token's vector is ranked; rank 1 is the largest product. The paper prints "
          "pictures, no numbers.",
          runs == 1 ? ""
                    : text(" Ranks are means over ", runs,
                           " runs with different seeds; pictures and cosines are those of seed ",
                           options.seed, "."))),
      options);
}

// The recipe of Figures 4.15 and 4.16. It counts how often two mechanisms of sorting are found in a
// model: the delimiter finds the smallest number of the input, and a number of the output finds the
// next greater number.

std::vector<HintingModel> hint_and_none() {
  return {{.hint = "successor", .repetitions = true}, {.repetitions = true}};
}

/// For each run of a model, the share of cases in which a mechanism was found.
struct Share {
  std::vector<double> of_runs = {};
  std::int64_t count = 0;  // number of cases in the last run

  void add(std::int64_t hits, std::int64_t trials) {
    of_runs.push_back(static_cast<double>(hits) / static_cast<double>(trials));
    count = trials;
  }
};

void mechanisms(const RecipeOptions& options, RecipeResult& result) {
  const HintingTests tests = hinting_tests(options.scale);
  const SweepAxis axis = parse_axis("length=" + tests.lengths);
  html::LineChart minimum{.x_label = "length", .y_label = "share", .series = {}};
  minimum.y_low = 0;
  minimum.y_high = 1;
  html::LineChart successor = minimum;
  for (const HintingModel& model : hint_and_none()) {
    const std::string name = model.hint == "none" ? "no hinting" : "hinting";
    const std::vector<LoadedRun> runs = load_runs(model, options);
    html::Series found{.name = name, .points = {}, .marks = true};
    html::Series followed = found;
    for (const SweepPoint& point : sweep_points(runs[0].config, {axis})) {
      Share least, next;
      for (const LoadedRun& run : runs) {
        const Mechanisms counts =
            sorting_mechanisms(*run.model, *point.task,
                               {.samples = tests.samples, .seed = hinting_test_seed(options)});
        least.add(counts.minimum_hits, counts.minimum_count);
        next.add(counts.successor_hits, counts.successor_count);
      }
      const auto add = [&](html::Series& series, const std::string& mechanism, const Share& share) {
        const Row row = add_row(result, name + ", " + mechanism, text("length ", point.values[0]),
                                share.of_runs, {}, share.count);
        series.points.push_back({std::stod(point.values[0]), row.value, row.low, row.high});
      };
      add(found, "min", least);
      add(followed, "Identity+Successor", next);
    }
    minimum.series.push_back(std::move(found));
    successor.series.push_back(std::move(followed));
  }
  result.sections.emplace_back(
      "Finding the minimum",
      html::figure(html::line_chart(minimum),
                   "Figure 4.15: after the first attention, the largest product of the delimiter "
                   "with the decoder basis is that of the smallest number"));
  result.sections.emplace_back(
      "Identity+Successor",
      html::figure(html::line_chart(successor),
                   "Figure 4.16: after the second attention, the two largest products of an output "
                   "number are those with itself and with the next greater number; the last number "
                   "is not counted"));
  add_notes(result,
            html::paragraph(text("Shares over ", tests.samples,
                                 " fresh sequences at each length, all tokens given. ",
                                 how_intervals(options))),
            options);
}

const RegisterRecipe figure12{grid_recipe(
    {.id = "hinting/fig4.12",
     .summary = "the residual stream of a model that sorts, on the encoder and decoder bases "
                "(Figs. 4.12 to 4.14)",
     .scales = scales,
     .runs = [](const RecipeOptions& options) { return hinting_runs({HintingModel()}, options); },
     .report = projections,
     .reuse_from = hinting_recipes()})};
const RegisterRecipe figure15{grid_recipe(
    {.id = "hinting/fig4.15",
     .summary = "how often the two mechanisms of sorting are found in a model, with and without "
                "hint (Figs. 4.15 and 4.16)",
     .scales = scales,
     .runs = [](const RecipeOptions& options) { return hinting_runs(hint_and_none(), options); },
     .report = mechanisms,
     .reuse_from = hinting_recipes()})};

}  // namespace
}  // namespace longhand::app::hinting_probes
