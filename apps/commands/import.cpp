#include <iostream>

#include "apps/run/run_folder.h"
#include "core/safetensors_parts.h"
#include "nn/models/hugging_face.h"
#include "nn/training/checkpoint_store.h"
#include "nn/training/not_finite.h"

namespace longhand::app {
namespace {

namespace fs = std::filesystem;

/// The run's settings: the model's from the folder, all others from defaults and flags.
Config config_for(const nn::DecoderConfig& model, const Arguments& arguments) {
  const bool named = arguments.given("task");
  Config config =
      as_usage("task", [&] { return Config(named ? arguments.word("task") : "tokens"); });
  if (!named) {
    config.set("task.vocabulary", std::to_string(model.vocabulary));
    config.set("task.length", std::to_string(std::min<std::int64_t>(model.longest, 64)));
  }
  config.set_model(model);
  config.set_flags(arguments);
  config.check();
  const auto task = config.task();
  LONGHAND_CHECK(task->vocabulary().size() == model.vocabulary, "task ", config.text("task.name"),
                 ": expected a vocabulary of ", model.vocabulary, " tokens, the model's, got ",
                 task->vocabulary().size());
  return config;
}

/// Such a model can be looked at, but not be trained.
void warn_of_nonfinite(const nn::Parameters& parameters) {
  std::int64_t tensors = 0, entries = 0;
  std::string first;
  for (const nn::Parameter& p : parameters.all()) {
    const std::int64_t count = nn::count_nonfinite(p.value());
    if (count == 0) continue;
    if (tensors++ == 0) first = p.name();
    entries += count;
  }
  if (tensors == 0) return;
  std::cerr << "longhand import: warning: " << entries << " entries of " << tensors
            << " tensors are NaN or infinite, the first in " << first << '\n';
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one folder with a config.json");
  const fs::path from = arguments.plain()[0], to = arguments.word("out");
  const nn::ForeignConfig foreign = nn::read_config(from);
  const nn::Weights weights = nn::Weights::open(from, foreign.config);
  SafetensorsParts::open(from, "model").check_sums();  // where longhand wrote it
  RunFolder folder = RunFolder::create(to, config_for(foreign.config, arguments));
  const Config& config = folder.config();
  const auto backend = make_backend(config.text("compute.backend"), config.backend_options());
  const nn::Decoder model(*backend, config.model(*config.task()), config.seed());
  nn::read_tensors(weights, foreign.family->tensors(model));
  warn_of_nonfinite(model.parameters());

  const bool fresh = !fs::exists(to);
  try {
    folder.open();
    folder.open_logs(0);
    nn::CheckpointStore store(folder.checkpoints(), 1, config.most_file_bytes());
    store.save({}, model.parameters(), nn::AdamOptimizer(model.parameters(), config.adam()));
  } catch (const Error&) {
    std::error_code ignored;
    if (fresh) fs::remove_all(to, ignored);
    throw;
  }
  Report report({{"family", "family"},
                 {"run", "run"},
                 {"parameters", "parameters"},
                 {"layers", "layers"},
                 {"width", "width"},
                 {"vocabulary", "vocabulary"}});
  report.add({{"family", foreign.family->type},
              {"run", to.string()},
              {"parameters", model.parameters().count()},
              {"layers", foreign.config.layers},
              {"width", foreign.config.width},
              {"vocabulary", foreign.config.vocabulary}});
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "import",
     .summary = "makes a run of a Hugging Face folder: GPT-2, GPT-NeoX, Llama, Qwen 2 or Gemma 3",
     .usage = {"DIR --out RUN [--task NAME] [flags]"},
     .options = join({{"out", "RUN", "the run folder"}}, join(config_options(), {json_option()})),
     .examples = {"import gpt2 --out runs/gpt2", "generate runs/gpt2 --prompt \"464 3290\"",
                  "import gpt2 --out runs/chained --heads chacal:12 --gamma 0.1"},
     .notes = "Reads config.json and model.safetensors, or the shards of\n"
              "model.safetensors.index.json, in f32, f16 or bf16. Without --task the run's tokens\n"
              "are numbers; a task must have the model's vocabulary. Other flags set what the run\n"
              "goes on with, heads of another kind included.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app
