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

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const bool with_reference = arguments.flag("reference");
  if (with_reference && arguments.given("prompt")) {
    wrong_usage(
        "--prompt cannot be combined with --reference, because only samples of a task have "
        "reference attention");
  }
  const std::filesystem::path folder = arguments.plain()[0];
  const EvaluationOptions options{.samples = arguments.integer("samples", 1, 1 << 24),
                                  .seed = seed_from(arguments)};
  // A task defines its reference attention for whole samples only. With --reference, the default
  // number of tokens is therefore larger.
  const std::int64_t most =
      with_reference && !arguments.given("tokens") ? 104 : arguments.integer("tokens", 1, 1024);
  const auto index = static_cast<std::uint32_t>(arguments.integer("sample", 0, 1 << 30));
  const auto load = arguments.given("prompt") ? load_run_for_prompts : load_run;
  const LoadedRun loaded = load(folder, load_options(arguments));
  const std::string on = arguments.given("on") ? arguments.word("on") : "";
  const auto task = as_usage("on", [&] { return loaded.config.task(on); });

  std::vector<FalShare> shares;
  AttentionMeasures measures;
  if (with_reference) {
    measures = measure_attention(*loaded.model, *task, options);
  } else {
    shares = fal_shares(*loaded.model, *task, options);
  }
  tasks::Sample sample;
  if (arguments.given("prompt")) {
    sample = {.tokens = as_usage(
                  "prompt", [&] { return task->vocabulary().encode(arguments.word("prompt")); }),
              .targets = {}};
    if (sample.tokens.empty()) wrong_usage("--prompt: expected at least one token");
  } else {
    Rng rng(options.seed, Purpose::evaluation, 0, index);
    sample = task->sample(rng, 0);
  }
  std::vector<std::int64_t> positions;
  for (const std::string& position : arguments.words("position")) {
    positions.push_back(parse_integer("--position", position, 0, std::ssize(sample.tokens) - 1));
  }
  const std::size_t shown = std::min(sample.tokens.size(), static_cast<std::size_t>(most));

  const std::string name = on.empty() ? loaded.config.distributions()[0].name : on;
  html::Page page(folder.filename().string() + ", inspected",
                  arguments.given("prompt")
                      ? text("Step ", loaded.step, "; ", arguments.word("prompt"))
                      : text("Step ", loaded.step, "; sample ", index, " of distribution ", name));
  if (with_reference) {
    for (auto& [heading, content] :
         attention_sections(measures, *loaded.model, *task, sample, shown)) {
      page.add(heading, std::move(content));
    }
  } else {
    const auto views =
        look_inside(*loaded.model, beginning_for(*loaded.model, *task, sample, shown));
    if (!shares.empty()) {
      page.add("Reads of FAL heads",
               html::paragraph(text("Share of the scored tokens of ", options.samples,
                                    " samples at which the head reads the token that the answer "
                                    "depends on.")) +
                   shares_table(shares) + selection_pictures(*task, sample, views));
    }
    page.add("Softmax attention", attention_maps(*task, sample, views));
  }
  for (const std::int64_t position : positions) {
    const auto token = sample.tokens[static_cast<std::size_t>(position)];
    page.add(text("Residual stream of ", token_label(task->vocabulary(), token), " at position ",
                  position),
             projection_pictures(*loaded.model, *task, sample.tokens, position));
  }
  if (!positions.empty()) {
    page.add("Near-orthogonality of the bases", bases_table(bases_of(*loaded.model)));
  }
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
     .summary = "shows the attention of a run's heads and the residual stream of its tokens",
     .usage = {"RUN [--reference] [--on NAME] [--samples N] [--out FILE]"},
     .options = join(
         run_options(),
         {{"reference", "", "compare attention with the task's reference"},
          {"on", "NAME", "a distribution of the task; default: the one used for training"},
          {"samples", "N", "number of samples for the statistics", "200"},
          {"seed", "N", "seed of the samples", "1"},
          {"sample", "N", "index of the sample that is drawn", "0"},
          {"tokens", "N",
           "number of the sample's tokens that are drawn; default with --reference: 104", "48"},
          {"prompt", "TEXT", "text to inspect instead of a sample"},
          {"position",
           "N",
           "a token whose residual stream is projected on the model's bases",
           {},
           true},
          {"out", "FILE",
           "the page; default: RUN/inspect.html, or RUN/attention.html with --reference"},
          json_option()}),
     .examples = {"inspect runs/flip-flop-1", "inspect runs/reversal-1 --reference --on ood",
                  "inspect runs/flip-flop-1 --on sparse --json",
                  "inspect runs/sorting-1 --prompt \"5 17 43 ⊥ 5\" --position 2 --position 3"},
     .notes =
         "A FAL head at position i finds the last earlier key m whose score with its query is\n"
         "positive, and reads the value at m + 1. The read is correct if m + 1 is the position\n"
         "of the task's answer; in Flip-Flop, if m is the last write or read.\n"
         "--reference reports the share of attention rollout on the tokens that the answer\n"
         "depends on, for correct and wrong predictions, with Welch's test; the attention of\n"
         "every head on these tokens and its entropy; errors by position; and accuracy against\n"
         "length.\n"
         "--position prints the products of the residual stream with the rows of the embedding\n"
         "(encoder basis) and of the output layer (decoder basis), in every layer, before and\n"
         "after its feed forward.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::inspect_command
