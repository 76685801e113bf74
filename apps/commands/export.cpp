#include <algorithm>
#include <iostream>

#include "apps/run/run_folder.h"
#include "core/quote.h"
#include "nn/models/peft.h"
#include "nn/text/chat_template.h"
#include "tasks/conversation.h"

namespace longhand::app::export_command {
namespace {

/// The tokens that begin and end a text, if the vocabulary of the run defines them.
nn::TextTokens tokens_of(const LoadedRun& loaded) {
  const tasks::Vocabulary& vocabulary = loaded.task->vocabulary();
  nn::TextTokens tokens{.ends = loaded.task->ends()};
  if (const auto begin = vocabulary.beginning(); begin.size() == 1) tokens.begin = begin.front();
  if (loaded.config.knows("task.template")) {
    const std::string chat = tasks::chat_template_name(loaded.config.task_values());
    if (chat == "none") return tokens;
    const auto end = vocabulary.encode_part(nn::ChatTemplate(chat).end_of_turn());
    if (end.size() == 1 && std::ranges::count(tokens.ends, end.front()) == 0) {
      tokens.ends.push_back(end.front());
    }
  }
  return tokens;
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const std::string to = arguments.word("out");
  if (const auto form = std::filesystem::path(to).extension();
      form == ".gguf" || form == ".safetensors") {
    wrong_usage("--out: expected a folder, got ", quote(to),
                "; export writes a folder in the format of Hugging Face");
  }
  const LoadedRun loaded = load_run(arguments.plain()[0], load_options(arguments));
  const auto most = static_cast<std::uint64_t>(arguments.integer("part_mib", 0, largest_part_mib));
  std::string_view family;
  if (arguments.flag("adapter")) {
    family = nn::export_adapter(*loaded.model, to);
  } else {
    loaded.model->merge_adapters();
    family = nn::export_model(*loaded.model, to, most << 20, tokens_of(loaded));
    RunFolder::export_tokenizer(arguments.plain()[0], to);
  }
  if (arguments.json()) {
    std::cout << Json{{"run", arguments.plain()[0]},
                      {"step", loaded.step},
                      {"family", family},
                      {"folder", to}}
              << '\n';
  } else {
    std::cout << "step " << loaded.step << " as " << family << ": " << printable(to) << '\n';
  }
}

const Register command{
    {.name = "export",
     .summary =
         "writes a run's model as a Hugging Face folder: GPT-2, GPT-NeoX, Llama, Qwen 2 or Gemma 3",
     .usage = {"RUN --out DIR [--adapter] [--step N]"},
     .options =
         join({{"out", "DIR",
                "folder for config.json, model.safetensors, the run's tokenizer and, if the run "
                "defines them, the tokens that begin and end a text"},
               {"adapter", "", "write only the LoRA matrices, in the format of the package peft"},
               {"part_mib", "N", "maximum size of a weight file, in MiB; 0: no limit", "0"}},
              join(run_options(), {json_option()})),
     .examples = {"export runs/flip-flop-1 --out flip-flop-hf"},
     .notes =
         "Models with learned positions are written as GPT-2. Models with rotary positions are\n"
         "written as GPT-NeoX if they have LayerNorms. With RMS norms and a gate they are\n"
         "written as Llama, as Qwen 2 if only queries, keys and values have biases, or as\n"
         "Gemma 3 if each sublayer also has a norm after it. Other models are refused, such as\n"
         "models with heads other than softmax. LoRA matrices are merged into the weights, or\n"
         "written alone with --adapter.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::export_command
