#include <iostream>

#include "apps/compute.h"
#include "apps/run/run_folder.h"
#include "nn/models/decode.h"

namespace longhand::app {
namespace {

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const std::string& prompt = arguments.word("prompt");
  if (prompt.empty()) wrong_usage("--prompt: expected at least one token");
  const std::int64_t most = arguments.integer("tokens", 0, 1 << 24);
  const LoadedRun loaded =
      load_run(arguments.plain()[0], step_from(arguments), compute_flags(arguments));
  const auto head = arguments.integer("head", 0, loaded.task->heads() - 1);
  if (loaded.task->outputs().groups != 1) {
    fail(arguments.plain()[0], ": its task ", loaded.config.kind().name,
         " does not say the next token");
  }

  const tasks::Vocabulary& vocabulary = loaded.task->vocabulary();
  const std::vector<std::int32_t> tokens =
      as_usage("prompt", [&] { return vocabulary.encode(prompt); });
  nn::DecodeOptions options{.most = most, .head = head};
  if (arguments.given("stop")) {
    options.stop = as_usage("stop", [&] { return vocabulary.at(arguments.word("stop")); });
  }
  const auto answer = nn::decode_greedy(*loaded.model, {&tokens, 1}, options)[0];
  const std::string text = vocabulary.decode(answer);
  if (arguments.json()) {
    std::cout << Json{{"run", arguments.plain()[0]},
                      {"step", loaded.step},
                      {"prompt", prompt},
                      {"text", text},
                      {"tokens", answer}}
              << '\n';
  } else {
    std::vector<std::int32_t> whole = tokens;
    whole.insert(whole.end(), answer.begin(), answer.end());
    std::cout << vocabulary.decode(whole) << '\n';
  }
}

const Register command{
    {.name = "generate",
     .summary = "continues a prompt with a run's model",
     .usage = {"RUN --prompt TEXT [--tokens N] [--stop TEXT]"},
     .options = join(run_options(),
                     {{"prompt", "TEXT", "what the model reads first, in its task's tokens"},
                      {"tokens", "N", "new tokens, at most", "32"},
                      {"stop", "TEXT", "end after this token"},
                      {"head", "N", "the output head", "0"},
                      json_option()}),
     .examples = {"generate runs/flip-flop-1 --prompt w1i0i0r --tokens 1"},
     .notes = "Each new token is the likeliest one.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app
