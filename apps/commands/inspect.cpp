#include <algorithm>
#include <iostream>

#include "apps/compute.h"
#include "apps/html/page.h"
#include "apps/run/attention_report.h"
#include "apps/run/inspection.h"
#include "apps/run/probe.h"
#include "apps/run/run_folder.h"
#include "core/atomic_file.h"
#include "core/quote.h"

namespace longhand::app::inspect_command {
namespace {

void print_shares(const std::vector<FalShare>& shares, const Arguments& arguments,
                  std::vector<std::pair<std::string, Json>> about) {
  Report report({{"layer", "layer"},
                 {"head", "head"},
                 {"value", "reads what it should", "%.4f"},
                 {"low", "95% from", "%.4f"},
                 {"high", "to", "%.4f"},
                 {"count", "of"}});
  for (auto& [key, value] : about) report.set(key, std::move(value));
  for (const FalShare& share : shares) {
    const double hits = static_cast<double>(share.hits), count = static_cast<double>(share.count);
    const auto interval = tasks::wilson(hits, count);
    report.add({{"layer", share.layer},
                {"head", share.head},
                {"value", share.count ? Json(hits / count) : Json()},
                {"low", interval.low},
                {"high", interval.high},
                {"count", share.count}});
  }
  if (!shares.empty() || arguments.json()) report.print(std::cout, arguments.json());
}

void print_measures(const AttentionMeasures& measures, const Arguments& arguments,
                    std::vector<std::pair<std::string, Json>> about) {
  if (!arguments.json()) {
    std::cout << to_text(measures);
    return;
  }
  const Json figures = to_json(measures);
  Json all = Json::object();
  for (auto& [key, value] : about) all[key] = std::move(value);
  for (const auto& [key, value] : figures.members()) all[key] = value;
  std::cout << all << '\n';
}

/// Maximum number of tokens that are drawn. The default is larger with --reference, because a task
/// defines the reference attention (the tokens to be attended to) for whole samples only.
std::int64_t drawn_tokens(const Arguments& arguments) {
  if (arguments.flag("reference") && !arguments.given("tokens")) return 104;
  return arguments.integer("tokens", 1, 1024);
}

/// The sample of --prompt, or a sample drawn from the task.
tasks::Sample sample_from(const Arguments& arguments, const tasks::Task& task, Rng rng) {
  if (!arguments.given("prompt")) return task.sample(rng, 0);
  tasks::Sample sample{
      .tokens =
          as_usage("prompt", [&] { return task.vocabulary().encode(arguments.word("prompt")); }),
      .targets = {}};
  if (sample.tokens.empty()) wrong_usage("--prompt: expected at least one token");
  return sample;
}

/// The model, and the sample whose first `shown` tokens are drawn.
struct Inspected {
  nn::Decoder& model;
  const tasks::Task& task;
  tasks::Sample sample;
  std::size_t shown;
};

/// Adds the heads to the page: for each FAL head (First-After-Last) the token that it selects, and
/// for all other heads the attention weights. `shares` counts for each FAL head how often it reads
/// the token that the answer depends on, measured on `samples` samples.
void add_heads(html::Page& page, const Inspected& inspected, const std::vector<FalShare>& shares,
               std::int64_t samples) {
  const auto& [model, task, sample, shown] = inspected;
  const auto views = look_inside(model, beginning_for(model, task, sample, shown));
  if (!shares.empty()) {
    page.add("Reads of FAL heads",
             html::paragraph(text("Share of the scored tokens of ", samples,
                                  " samples at which the head reads the token that the answer "
                                  "depends on.")) +
                 shares_table(shares) + selection_pictures(task, sample, views));
  }
  page.add("Softmax attention", attention_maps(task, sample, views));
}

/// Adds to the page the products of the residual stream with the rows of the embedding and of the
/// output layer, at the positions given by --position.
void add_streams(html::Page& page, const Inspected& inspected, const Arguments& arguments) {
  const auto& [model, task, sample, shown] = inspected;
  std::vector<std::int64_t> positions;
  for (const std::string& position : arguments.words("position")) {
    positions.push_back(parse_integer("--position", position, 0, std::ssize(sample.tokens) - 1));
  }
  for (const std::int64_t position : positions) {
    const auto token = sample.tokens[static_cast<std::size_t>(position)];
    page.add(text("Residual stream of ", token_label(task.vocabulary(), token), " at position ",
                  position),
             projection_pictures(model, task, sample.tokens, position));
  }
  if (!positions.empty()) {
    page.add("Near-orthogonality of the bases", bases_table(bases_of(model)));
  }
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const bool with_reference = arguments.flag("reference"), prompted = arguments.given("prompt");
  if (with_reference && prompted) {
    wrong_usage(
        "--prompt cannot be combined with --reference, because only samples of a task have "
        "reference attention");
  }
  const std::filesystem::path folder = arguments.plain()[0];
  const EvaluationOptions options{.samples = arguments.integer("samples", 1, 1 << 24),
                                  .seed = seed_from(arguments)};
  const auto most = static_cast<std::size_t>(drawn_tokens(arguments));
  const auto index = static_cast<std::uint32_t>(arguments.integer("sample", 0, 1 << 30));
  const LoadedRun loaded =
      (prompted ? load_run_for_prompts : load_run)(folder, load_options(arguments));
  nn::Decoder& model = *loaded.model;
  const std::string on = arguments.given("on") ? arguments.word("on") : "";
  const auto task = as_usage("on", [&] { return loaded.config.task(on); });

  tasks::Sample sample =
      sample_from(arguments, *task, Rng(options.seed, Purpose::evaluation, 0, index));
  const std::size_t shown = std::min(sample.tokens.size(), most);
  const Inspected inspected{model, *task, std::move(sample), shown};

  const std::string name = on.empty() ? loaded.config.distributions()[0].name : on;
  html::Page page(folder.filename().string() + ", inspected",
                  text("Step ", loaded.step, "; ",
                       prompted ? arguments.word("prompt")
                                : text("sample ", index, " of distribution ", name)));
  std::vector<FalShare> shares;
  AttentionMeasures measures;
  if (with_reference) {
    measures = measure_attention(model, *task, options);
    for (auto& [heading, content] :
         attention_sections(measures, model, *task, inspected.sample, shown)) {
      page.add(heading, std::move(content));
    }
  } else {
    shares = fal_shares(model, *task, options);
    add_heads(page, inspected, shares, options.samples);
  }
  add_streams(page, inspected, arguments);
  page.add("Configuration", html::code(loaded.config.ini()));
  const std::filesystem::path file =
      arguments.given("out") ? std::filesystem::path(arguments.word("out"))
                             : folder / (with_reference ? "attention.html" : "inspect.html");
  write_atomically(file, page.render());

  const std::vector<std::pair<std::string, Json>> about{{"run", folder.string()},
                                                        {"step", loaded.step},
                                                        {"on", name},
                                                        {"seed", options.seed},
                                                        {"page", file.string()}};
  if (with_reference) {
    print_measures(measures, arguments, about);
  } else {
    print_shares(shares, arguments, about);
  }
  if (!arguments.json()) std::cout << "pictures: " << printable(file.string()) << '\n';
}

const Register command{
    {.name = "inspect",
     .summary = "writes an HTML page that shows the attention of a run's heads on a sample",
     .usage = {"RUN [--reference] [--on NAME] [--samples N] [--out FILE]"},
     .options =
         join(run_options(),
              {{"reference", "", "compare the attention with the task's reference attention"},
               {"on", "NAME",
                "distribution of the task to sample from; default: the training distribution"},
               {"samples", "N", "number of samples for the statistics", "200"},
               {"seed", "N", "seed of the samples", "1"},
               {"sample", "N", "index of the sample to plot", "0"},
               {"tokens", "N",
                "maximum number of tokens to plot; with --reference, the default is 104", "48"},
               {"prompt", "TEXT", "text to inspect instead of a sample"},
               {"position",
                "N",
                "index of a token whose residual stream is drawn; can be repeated",
                {},
                true},
               {"out", "FILE",
                "HTML file; default: RUN/inspect.html, or RUN/attention.html with --reference"},
               json_option()}),
     .examples = {"inspect runs/flip-flop-1", "inspect runs/reversal-1 --reference --on ood",
                  "inspect runs/flip-flop-1 --on sparse --json",
                  "inspect runs/sorting-1 --prompt \"5 17 43 ⊥ 5\" --position 2 --position 3"},
     .notes =
         "The command prints how often each FAL head (First-After-Last) reads the token that\n"
         "determines the answer. At position i, a FAL head selects the last earlier position m\n"
         "whose key has a positive product with the query, and reads the value at m + 1. In\n"
         "Flip-Flop, the answer is the bit at m + 1 if m is the position of the preceding write\n"
         "or read instruction. The command therefore counts how often m is this position.\n"
         "The reference attention of a task marks the tokens that an answer depends on.\n"
         "--reference measures the share of attention rollout on these tokens. Welch's test\n"
         "compares this share between correct and wrong predictions. The command also measures\n"
         "the attention of each head on these tokens, the entropy of each head, the errors by\n"
         "position in the answer, and the accuracy by sample length.\n"
         "--position multiplies the residual stream of a token by all rows of the embedding\n"
         "(encoder basis) and of the output layer (decoder basis). The page shows the products\n"
         "for every layer, before and after the feed forward.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::inspect_command
