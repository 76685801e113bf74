#include <algorithm>
#include <iostream>
#include <iterator>

#include "apps/compute.h"
#include "apps/run/continuation.h"
#include "apps/run/published_model.h"
#include "apps/run/token_arrays.h"
#include "nn/models/decode.h"

namespace longhand::app::generate_command {
namespace {

using Tokens = std::vector<std::int32_t>;

/// The prompts given on the command line; empty if the prompts come from a file.
std::vector<std::string> prompts_from(const Arguments& arguments) {
  std::vector<std::string> prompts = arguments.words("prompt");
  if (arguments.given("token-file")) {
    if (!prompts.empty()) wrong_usage("--prompt and --token-file cannot be combined");
    return {};
  }
  for (std::string& prompt : prompts) {
    if (prompt == "-") prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  }
  const bool empty = std::ranges::any_of(prompts, &std::string::empty);
  if (prompts.empty() || empty) wrong_usage("--prompt: expected at least one token");
  return prompts;
}

/// Writes the logits at every token of a prompt to `file`.
void write_logits(const LoadedRun& loaded, const Tokens& prompt, const nn::GenerateOptions& options,
                  const std::string& file) {
  Backend& backend = *loaded.backend;
  const auto length = static_cast<std::int32_t>(prompt.size());
  nn::Batch batch{.tokens = prompt, .lengths = {length}};
  if (options.positions) batch.positions = options.positions(0, prompt, length);
  const nn::Input input = nn::make_input(backend, batch);
  const Tensor logits = loaded.model->logits(loaded.model->features(input), options.head).value();
  std::vector<NamedTensor> tensors{{"logits", logits},
                                   {"tokens", Tensor::from(backend, {std::ssize(prompt)}, prompt)}};
  if (std::filesystem::path(file).extension() == ".npy") tensors.pop_back();
  save_arrays(file, tensors);
}

/// Writes the generated tokens as arrays. A .npy file contains the tokens only: [prompts, tokens].
void write_answers(const std::vector<Continuation>& all, const std::string& file) {
  const auto host = make_reference_backend();
  std::vector<Tokens> prompts, said;
  std::vector<double> probabilities;
  for (const Continuation& one : all) {
    prompts.push_back(one.prompt());
    said.emplace_back();
    for (const nn::Choice& choice : one.choices()) {
      said.back().push_back(choice.token);
      probabilities.push_back(choice.log_probability);
    }
  }
  std::vector<NamedTensor> arrays;
  add_lists(arrays, *host, "tokens", "lengths", said);
  if (std::filesystem::path(file).extension() == ".npy") {
    LONGHAND_CHECK(std::ranges::all_of(said, [&](auto& s) { return s.size() == said[0].size(); }),
                   file,
                   ": expected a name that ends in .npz or .safetensors, because the answers "
                   "differ in length");
    const Tensor tokens = arrays[0].tensor.reshape({std::ssize(said), std::ssize(said[0])});
    return save_arrays(file, std::vector<NamedTensor>{{"tokens", tokens}});
  }
  add_lists(arrays, *host, "prompt_tokens", "prompt_lengths", prompts);
  arrays.push_back({"log_probabilities",
                    Tensor::from(*host, {std::ssize(probabilities)}, DType::f64, probabilities)});
  save_arrays(file, arrays);
}

Json in_json(const Continuation& c, const std::string& prompt) {
  Json tokens = Json::array(), probabilities = Json::array();
  for (const nn::Choice& choice : c.choices()) {
    tokens.push_back(choice.token);
    probabilities.push_back(choice.log_probability);
  }
  return {{"prompt", prompt},
          {"prompt_tokens", c.prompt()},
          {"text", c.text()},
          {"tokens", tokens},
          {"log_probabilities", probabilities}};
}

/// Sets the limit of the context from --context. By default, a text model reads at most as many
/// tokens as in training, and other models have no limit.
void limit_context(nn::GenerateOptions& options, const LoadedRun& loaded,
                   const std::vector<Tokens>& prompts, const Arguments& arguments) {
  if (loaded.config.kind().name == "text") {
    options.context = loaded.model->config().longest;
    // The tokens that the tokenizer puts before a text are kept.
    const Tokens beginning = loaded.task->vocabulary().beginning();
    const bool begin = std::ranges::all_of(prompts, [&](const Tokens& prompt) {
      return prompt.size() >= beginning.size() &&
             std::ranges::equal(beginning, std::span(prompt).first(beginning.size()));
    });
    if (begin) options.kept = std::ssize(beginning);
  }
  if (!arguments.given("context")) return;
  options.context = arguments.integer("context", 0, 1 << 24);
  if (options.context != 0 && options.context < options.kept + 2) {
    wrong_usage("--context: expected 0 or at least ", options.kept + 2, ", got ", options.context);
  }
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder or GGUF file");
  const std::string& folder = arguments.plain()[0];
  for (const char* file : {"out", "logits"}) {
    if (arguments.given(file)) array_file_from(arguments, file);
  }
  std::vector<std::string> prompts = prompts_from(arguments);
  const std::string stop = arguments.given("stop") ? arguments.word("stop") : "";
  nn::GenerateOptions options{.most = arguments.integer("tokens", 0, 1 << 24),
                              .sampling = sampling_from(arguments),
                              .seed = seed_from(arguments),
                              .probabilities = arguments.json() || arguments.given("out")};
  const LoadedRun loaded = load_for_prompts(folder, load_options(arguments));
  options.head = arguments.integer("head", 0, loaded.task->heads() - 1);
  options.positions = given_positions(*loaded.model, *loaded.task, options.seed);
  if (!loaded.task->outputs().says_next) {
    fail(folder, ": its task ", loaded.config.kind().name, " does not predict the next token");
  }
  const tasks::Vocabulary& vocabulary = loaded.task->vocabulary();
  const bool is_text = loaded.config.kind().name == "text";
  if (is_text && !arguments.given("temperature")) options.sampling.temperature = text_temperature;
  const Tokens end = arguments.given("stop") ? Tokens{} : end_of_text(loaded.config, vocabulary);
  Tokens ends = loaded.task->ends();
  if (end.size() == 1) ends.push_back(end[0]);
  options.stops = ends;
  if (!stop.empty() && !is_text) {
    options.stops.push_back(as_usage("stop", [&] { return vocabulary.at(stop); }));
  }
  const std::string cut = !is_text ? "" : end.size() > 1 ? vocabulary.decode(end) : stop;

  std::vector<Continuation> all;
  std::vector<Tokens> read;
  for (const std::string& prompt : prompts) {
    read.push_back(as_usage("prompt", [&] { return vocabulary.encode(prompt); }));
    if (read.back().empty()) wrong_usage("--prompt: expected at least one token");
  }
  if (arguments.given("token-file")) {
    read = read_token_sequences(arguments.word("token-file"), vocabulary.size());
    for (const Tokens& tokens : read) prompts.push_back(vocabulary.decode(tokens));
  }
  for (const Tokens& tokens : read) all.emplace_back(vocabulary, tokens);
  if (arguments.given("logits")) {
    if (prompts.size() != 1) wrong_usage("--logits: expected one prompt");
    write_logits(loaded, read[0], options, arguments.word("logits"));
  }

  bool drops = false;
  options.dropped = [&](std::size_t, std::int64_t) { drops = true; };
  limit_context(options, loaded, read, arguments);

  // With a single prompt, the text is printed while it is generated.
  const bool streams = prompts.size() == 1 && !arguments.json();
  // Prints the prompt as given, because the tokens may include special tokens that the tokenizer
  // adds around a text.
  const auto shown = [&](std::size_t i) {
    return is_text ? prompts[i] : vocabulary.decode(read[i]);
  };
  if (streams) std::cout << shown(0) << std::flush;
  bool first = true;
  options.said = [&](std::size_t i, const nn::Choice& choice) {
    all[i].add(choice, std::ranges::count(ends, choice.token) == 0);
    const bool goes_on = !all[i].cut_at(cut);
    if (streams) {
      if (std::exchange(first, false)) std::cout << vocabulary.separator();
      std::cout << all[i].fresh(cut, !goes_on) << std::flush;
    }
    return goes_on;
  };
  nn::generate(*loaded.model, read, options);
  const auto say_what_was_dropped = [&] {
    if (!drops) return;
    std::cout.flush();
    std::cerr << "longhand generate: the model reads at most " << options.context
              << " tokens at once, so it did not read the oldest tokens; --context sets another "
                 "limit\n";
  };
  if (arguments.given("out")) write_answers(all, arguments.word("out"));
  if (streams) {
    std::cout << all[0].fresh(cut, true) << '\n';
    return say_what_was_dropped();
  }
  if (!arguments.json()) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0) std::cout << "----\n";
      std::cout << shown(i) << vocabulary.separator() << all[i].text() << '\n';
    }
    return say_what_was_dropped();
  }
  Json whole{{"run", folder}, {"step", loaded.step}};
  if (all.size() == 1) {
    const Json one = in_json(all[0], prompts[0]);
    for (const auto& [name, value] : one.members()) whole[name] = value;
  } else {
    Json continuations = Json::array();
    for (std::size_t i = 0; i < all.size(); ++i) {
      continuations.push_back(in_json(all[i], prompts[i]));
    }
    whole["continuations"] = continuations;
  }
  std::cout << whole << '\n';
  say_what_was_dropped();
}

const Register command{
    {.name = "generate",
     .summary = "continues a prompt with a run's model",
     .usage = {"RUN|FILE.gguf --prompt TEXT [--tokens N] [--stop TEXT] [--temperature X]",
               "RUN --token-file FILE [--tokens N] [--out FILE]"},
     .options =
         join(run_options(),
              join(sampling_options(),
                   {{"prompt", "TEXT", "text to continue; - for standard input", {}, true},
                    {"tokens", "N", "maximum number of new tokens", "32"},
                    {"stop", "TEXT",
                     "stop before this text; for tasks whose tokens are words: after this token; "
                     "default for text: the separator or the end of an answer"},
                    {"context", "N",
                     "maximum number of tokens that the model reads at once; 0: no limit; default "
                     "for text: the longest sequence of the training, otherwise 0"},
                    {"head", "N", "output head", "0"},
                    {"token-file", "FILE", "prompts as tokens, instead of --prompt; see below"},
                    {"out", "FILE", "also write the generated tokens, as arrays"},
                    {"logits", "FILE", "also write the logits at every token of the prompt"},
                    json_option()})),
     .examples = {"generate runs/flip-flop-1 --prompt w1i0i0r --tokens 1",
                  "generate runs/book --prompt \"Once upon\" --top-p 0.95",
                  "generate runs/book --prompt - --json < prompt.txt",
                  "generate runs/book --token-file prompts.npy --out answers.npz"},
     .notes = "--prompt may be given several times; the prompts are continued as one batch. The\n"
              "same seed produces the same text for any number of threads.\n"
              "Files are .npy, .npz or .safetensors. --token-file contains integers [n] or\n"
              "[prompts, n]. In a file of several arrays they are named tokens, with lengths\n"
              "[prompts] if the lengths differ.\n"
              "--out writes tokens, lengths, log_probabilities, prompt_tokens and prompt_lengths.\n"
              "--logits writes logits [tokens, classes] and tokens. A .npy file contains only the\n"
              "first of these arrays.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::generate_command
