#include <iostream>

#include "apps/run/published_model.h"
#include "nn/training/not_finite.h"

namespace longhand::app::import_command {
namespace {

namespace fs = std::filesystem;

/// Warns if parameters contain NaN or infinity. Such a model can be inspected but not trained.
void warn_of_nonfinite(const nn::Parameters& parameters) {
  std::int64_t tensors = 0, entries = 0;
  std::string first;
  for (const nn::Parameter& p : parameters.all()) {
    if (p.blocks()) continue;  // the factors of blocks are not checked
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
  if (arguments.plain().size() != 1) {
    wrong_usage("expected one folder with a config.json, or a GGUF file");
  }
  const PublishedModel published = open_published(arguments.plain()[0]);
  const fs::path to = arguments.word("out");
  const nn::ForeignConfig& foreign = published.foreign;
  nn::require_enough(*published.weights, foreign.config);
  LONGHAND_CHECK(!fs::exists(to / "config.ini"), to.string(), ": the folder already holds a run");
  const bool fresh = !fs::exists(to);
  std::int64_t parameters = 0;
  try {
    RunFolder folder = RunFolder::create(to, config_of(published, to, &arguments));
    const auto backend = folder.config().compute().make();
    const bool as_stored = folder.config().training().weights == TrainedForm::file;
    const auto model =
        read_published(published, folder.config(), *backend, {.as_stored = as_stored});
    warn_of_nonfinite(model->parameters());
    folder.open(&model->parameters());
    folder.write_origin("imported");
    folder.open_logs(0);
    parameters = model->parameters().count();
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
              {"parameters", parameters},
              {"layers", foreign.config.layers},
              {"width", foreign.config.width},
              {"vocabulary", foreign.config.vocabulary}});
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "import",
     .summary = "converts a published GPT-2, GPT-NeoX, Llama, Qwen 2 or Gemma 3 into a run",
     .usage = {"DIR|FILE.gguf --out RUN [--task NAME] [flags]"},
     .options = join({{"out", "RUN", "run folder to write"}},
                     join(show_default(config_options({"task"}), "task",
                                       "text if the model has a tokenizer, otherwise tokens"),
                          {json_option()})),
     .examples = {"import gpt2 --out runs/gpt2", "generate runs/gpt2 --prompt \"The dog\"",
                  "import gpt2 --out runs/chained --heads chacal:12 --gamma 0.1"},
     .notes =
         "DIR is a folder in Hugging Face's format: config.json, and model.safetensors or the\n"
         "shards that model.safetensors.index.json lists. The weights are f32, f16 or bf16.\n"
         "FILE.gguf is a Llama, Qwen 2, Gemma 3 or GPT-2, quantized or not.\n"
         "If the model has a tokenizer, the default task is text; otherwise it is tokens. A\n"
         "folder has a tokenizer if it contains tokenizer.json, or vocab.json and merges.txt.\n"
         "The vocabularies of task and model must have the same size. Other flags change\n"
         "settings of the run, for example the kinds of heads (--help all).",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::import_command
