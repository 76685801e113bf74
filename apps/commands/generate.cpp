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

/// Writes the generated tokens to a file. A .npy file contains one array [prompts, tokens]. Files
/// of other formats also contain the prompts' tokens and the log-probabilities.
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

bool is_text(const LoadedRun& loaded) { return loaded.config.kind().name == "text"; }

/// Sets the limit of the context from --context. By default, a text model reads at most as many
/// tokens as in training, and other models have no limit.
void limit_context(nn::GenerateOptions& options, const LoadedRun& loaded,
                   const std::vector<Tokens>& prompts, const Arguments& arguments) {
  if (is_text(loaded)) {
    options.context = loaded.model->config().longest;
    // If the context is full, the oldest tokens are dropped, but not the tokens that the tokenizer
    // puts before a text.
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

struct Prompts {
  std::vector<std::string> texts;
  std::vector<Tokens> tokens;
};

/// Encodes the given texts, or reads the prompts of --token-file.
Prompts read_prompts(std::vector<std::string> texts, const tasks::Vocabulary& vocabulary,
                     const Arguments& arguments) {
  Prompts prompts{.texts = std::move(texts), .tokens = {}};
  for (const std::string& prompt : prompts.texts) {
    prompts.tokens.push_back(as_usage("prompt", [&] { return vocabulary.encode(prompt); }));
    if (prompts.tokens.back().empty()) wrong_usage("--prompt: expected at least one token");
  }
  if (arguments.given("token-file")) {
    prompts.tokens = read_token_sequences(arguments.word("token-file"), vocabulary.size());
    for (const Tokens& tokens : prompts.tokens) prompts.texts.push_back(vocabulary.decode(tokens));
  }
  return prompts;
}

/// Returns the tokens and texts that end a continuation and are not part of its text. Stores in
/// `options` the tokens at which generation stops. For text models, the text --stop is one of the
/// returned texts. For other tasks, --stop is a token that ends a continuation and is part of its
/// text.
Ends ends_from(const Arguments& arguments, const LoadedRun& loaded, nn::GenerateOptions& options) {
  const tasks::Vocabulary& vocabulary = loaded.task->vocabulary();
  const std::string stop = arguments.given("stop") ? arguments.word("stop") : "";
  Ends ends = ends_of(*loaded.task,
                      arguments.given("stop") ? Tokens{} : end_of_text(loaded.config, vocabulary));
  options.stops = ends.tokens;
  if (stop.empty()) return ends;
  if (is_text(loaded)) {
    ends.texts.push_back(stop);
  } else {
    options.stops.push_back(as_usage("stop", [&] { return vocabulary.at(stop); }));
  }
  return ends;
}

/// Prints the continuations of prompts. With `streams`, there is a single prompt, and its
/// continuation is printed while it is generated.
class Printer {
 public:
  Printer(const LoadedRun& loaded, const Prompts& prompts, const Ends& ends, bool streams)
      : loaded_(loaded), prompts_(prompts), streams_(streams) {
    for (const Tokens& tokens : prompts.tokens) all_.emplace_back(vocabulary_, tokens, ends);
    if (streams) std::cout << shown(0) << std::flush;
  }

  const std::vector<Continuation>& all() const { return all_; }

  /// Adds a token to continuation i. Returns false if the continuation ends.
  bool add(std::size_t i, const nn::Choice& choice) {
    Continuation& continuation = all_[i];
    const bool goes_on = !continuation.add(choice);
    if (streams_) {
      if (continuation.choices().size() == 1) std::cout << vocabulary_.separator();
      std::cout << continuation.fresh(!goes_on) << std::flush;
    }
    return goes_on;
  }

  void print_texts() {
    if (streams_) {
      std::cout << all_[0].fresh(true) << '\n';
      return;
    }
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (i > 0) std::cout << "----\n";
      std::cout << shown(i) << vocabulary_.separator() << all_[i].text() << '\n';
    }
  }

  void print_json(const std::string& run) const {
    Json whole{{"run", run}, {"step", loaded_.step}};
    if (all_.size() == 1) {
      const Json one = in_json(all_[0], prompts_.texts[0]);
      for (const auto& [name, value] : one.members()) whole[name] = value;
    } else {
      Json continuations = Json::array();
      for (std::size_t i = 0; i < all_.size(); ++i) {
        continuations.push_back(in_json(all_[i], prompts_.texts[i]));
      }
      whole["continuations"] = continuations;
    }
    std::cout << whole << '\n';
  }

 private:
  /// The text of prompt i. For text models, it is the text given by the user, because the prompt's
  /// tokens may include special tokens that the tokenizer adds around a text.
  std::string shown(std::size_t i) const {
    return is_text(loaded_) ? prompts_.texts[i] : vocabulary_.decode(prompts_.tokens[i]);
  }

  const LoadedRun& loaded_;
  const tasks::Vocabulary& vocabulary_ = loaded_.task->vocabulary();
  const Prompts& prompts_;
  bool streams_;
  std::vector<Continuation> all_;
};

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder or GGUF file");
  const std::string& folder = arguments.plain()[0];
  for (const char* file : {"out", "logits"}) {
    if (arguments.given(file)) array_file_from(arguments, file);
  }
  std::vector<std::string> texts = prompts_from(arguments);
  nn::GenerateOptions options{.most = arguments.integer("tokens", 0, 1 << 24),
                              .sampling = sampling_from(arguments),
                              .seed = seed_from(arguments),
                              .probabilities = arguments.json() || arguments.given("out")};
  const LoadedRun loaded = load_for_prompts(folder, load_options(arguments));
  options.head = arguments.integer("head", 0, loaded.task->heads() - 1);
  options.positions = given_positions(*loaded.model, *loaded.task, options.seed);
  if (!loaded.task->outputs().says_next) {
    fail(folder, ": the run's task ", loaded.config.kind().name,
         " does not predict the next token");
  }
  if (is_text(loaded) && !arguments.given("temperature")) {
    options.sampling.temperature = text_temperature;
  }
  const Ends ends = ends_from(arguments, loaded, options);
  const Prompts prompts = read_prompts(std::move(texts), loaded.task->vocabulary(), arguments);
  if (arguments.given("logits")) {
    if (prompts.tokens.size() != 1)
      wrong_usage("--logits can only be used with one prompt, got ", prompts.tokens.size(),
                  " prompts");
    write_logits(loaded, prompts.tokens[0], options, arguments.word("logits"));
  }
  limit_context(options, loaded, prompts.tokens, arguments);

  Printer printer(loaded, prompts, ends, prompts.tokens.size() == 1 && !arguments.json());
  options.said = [&](std::size_t i, const nn::Choice& choice) { return printer.add(i, choice); };
  bool drops = false;
  options.dropped = [&](std::size_t, std::int64_t) { drops = true; };
  nn::generate(*loaded.model, prompts.tokens, options);
  if (arguments.given("out")) write_answers(printer.all(), arguments.word("out"));
  if (arguments.json()) {
    printer.print_json(folder);
  } else {
    printer.print_texts();
  }
  if (drops) {
    std::cout.flush();
    std::cerr << "longhand generate: the model reads at most " << options.context
              << " tokens at once, so it did not read the oldest tokens; --context sets another "
                 "limit\n";
  }
}

const Register command{
    {.name = "generate",
     .summary = "continues a prompt with the model of a run, a GGUF file or a Hugging Face folder",
     .usage = {"RUN|DIR|FILE.gguf --prompt TEXT [--tokens N] [--stop TEXT] [--temperature X]",
               "RUN --token-file FILE [--tokens N] [--out FILE]"},
     .options = join(
         run_options(),
         join(sampling_options(),
              {{"prompt", "TEXT", "text to continue; -: read it from standard input", {}, true},
               {"tokens", "N", "maximum number of new tokens", "32"},
               {"stop", "TEXT",
                "stop before this text if the task is \"text\", otherwise after this token; "
                "default: the end of the document or answer"},
               {"context", "N",
                "context length, in tokens; 0: no limit; default: the model's maximum if the "
                "task is \"text\", otherwise 0"},
               {"head", "N",
                "index of the output head; a task with several kinds of answers has one "
                "output head for each kind",
                "0"},
               {"token-file", "FILE", "prompts as token ids, instead of --prompt; see below"},
               {"out", "FILE", "also write the generated tokens as arrays; see below"},
               {"logits", "FILE", "also write the logits at every prompt token; see below"},
               json_option()})),
     .examples = {"generate runs/flip-flop-1 --prompt w1i0i0r --tokens 1",
                  "generate runs/book --prompt \"Once upon\" --top-p 0.95",
                  "generate runs/book --prompt - --json < prompt.txt",
                  "generate runs/book --token-file prompts.npy --out answers.npz"},
     .notes = "--prompt may be given several times. The prompts are continued as one batch. The\n"
              "same seed produces the same text for any number of threads.\n"
              "--token-file FILE: a .npy, .npz or .safetensors file with integers [n] or\n"
              "[prompts, n]. If the file has several arrays, the tokens must be in the array\n"
              "named tokens. For prompts of different lengths, tokens [n] contains all prompts\n"
              "one after another, and the array lengths [prompts] contains their lengths.\n"
              "--out FILE: a .npz or .safetensors file with the arrays tokens, lengths,\n"
              "log_probabilities, prompt_tokens and prompt_lengths, or a .npy file with the\n"
              "array tokens.\n"
              "--logits FILE: a .npz or .safetensors file with the arrays logits [tokens,\n"
              "classes] and tokens, or a .npy file with the array logits. It needs exactly one\n"
              "prompt.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::generate_command
