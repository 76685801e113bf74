#include <algorithm>
#include <iostream>

#include "apps/run/run_folder.h"
#include "core/quote.h"
#include "nn/models/gguf_export.h"
#include "nn/models/peft.h"
#include "nn/text/chat_template.h"
#include "tasks/conversation.h"
#include "tasks/text_vocabulary.h"

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

/// A tokenizer with one token per byte and without merges.
nn::Tokenizer byte_tokenizer() {
  nn::TokenizerParts parts;
  parts.tokens = nn::TokenTable(256);
  for (nn::TokenId id = 0; id < 256; ++id) {
    parts.tokens.add(id, std::string(1, static_cast<char>(id)), nn::TokenTable::Found::yes);
  }
  return nn::Tokenizer(std::move(parts));
}

/// The Jinja text of the run's chat template. Warns if the template has no Jinja text.
std::string jinja_of(const LoadedRun& loaded, const std::filesystem::path& run) {
  if (!loaded.config.knows("task.template")) return {};
  const std::string name = tasks::chat_template_name(loaded.config.task_values());
  if (name == "none") return {};
  const std::filesystem::path folder = RunFolder::tokenizer(run);
  std::string jinja = std::filesystem::exists(folder) ? nn::ChatTemplate::jinja_of(folder) : "";
  if (!jinja.empty() && nn::ChatTemplate::recognize(jinja, folder.string()) == name) return jinja;
  jinja = nn::ChatTemplate::jinja(name);
  if (jinja.empty()) {
    std::cerr << "longhand export: warning: the file contains no chat template, because the run's "
                 "tokenizer has no Jinja text of "
              << name << '\n';
  }
  return jinja;
}

/// Prints what was exported. `kind` is "folder" or "file". `more` is added to the JSON object.
void report(const Arguments& arguments, const LoadedRun& loaded, std::string_view family,
            const char* kind, const std::string& to, const Json& more = Json::object()) {
  if (arguments.json()) {
    Json line{{"run", arguments.plain()[0]}, {"step", loaded.step}, {"family", family}, {kind, to}};
    for (const auto& [name, value] : more.members()) line[name] = value;
    std::cout << line << '\n';
  } else {
    std::cout << "step " << loaded.step << " as " << family << ": " << printable(to) << '\n';
  }
}

void write_gguf(const Arguments& arguments) {
  namespace fs = std::filesystem;
  for (const char* flag : {"out", "part_mib", "adapter"}) {
    if (arguments.given(flag)) {
      wrong_usage(
          shown_flag(flag),
          ": cannot be combined with --gguf, which writes a single file with the whole model");
    }
  }
  const std::string to = arguments.word("gguf"), name = arguments.word("type");
  nn::GgufContents contents{.type = written_gguf_type(name)};
  if (!contents.type) {
    wrong_usage("--type: expected ", written_gguf_types(), ", got ", quote(name));
  }
  const fs::file_status status = fs::status(to);
  LONGHAND_CHECK(!fs::exists(status), to, ": expected a new file, but this ",
                 fs::is_directory(status) ? "folder" : "file", " exists");
  const std::string& run = arguments.plain()[0];
  const LoadedRun loaded = load_run(run, load_options(arguments));
  loaded.model->parameters().decode_blocks();
  loaded.model->merge_adapters();
  const tasks::Vocabulary& vocabulary = loaded.task->vocabulary();
  std::optional<nn::Tokenizer> bytes;
  if (const auto* of = dynamic_cast<const tasks::TokenizerVocabulary*>(&vocabulary)) {
    contents.tokenizer = &of->tokenizer();
  } else if (dynamic_cast<const tasks::ByteVocabulary*>(&vocabulary)) {
    contents.tokenizer = &bytes.emplace(byte_tokenizer());
  }
  contents.chat_template = jinja_of(loaded, run);
  contents.tokens = tokens_of(loaded);
  const nn::ExportedGguf exported = nn::export_gguf(*loaded.model, to, contents);
  report(arguments, loaded, exported.architecture, "file", to,
         {{"type", name}, {"matrices", exported.matrices}, {"as_q8_0", exported.replaced}});
  if (exported.replaced > 0 && !arguments.json()) {
    std::cout << exported.replaced << " of " << exported.matrices
              << " matrices are stored as q8_0, because the length of their rows is not a multiple "
                 "of 256, the block size of "
              << name << '\n';
  }
}

void write_folder(const Arguments& arguments) {
  if (arguments.given("type")) wrong_usage("--type needs --gguf FILE");
  if (!arguments.given("out")) wrong_usage("expected --out DIR or --gguf FILE");
  const std::string to = arguments.word("out");
  if (const auto form = std::filesystem::path(to).extension();
      form == ".gguf" || form == ".safetensors") {
    wrong_usage("--out: expected a folder, got ", quote(to),
                form == ".gguf" ? "; --gguf FILE writes a GGUF file"
                                : "; export writes a folder in the format of Hugging Face");
  }
  const LoadedRun loaded = load_run(arguments.plain()[0], load_options(arguments));
  const auto most = static_cast<std::uint64_t>(arguments.integer("part_mib", 0, largest_part_mib));
  std::string_view family;
  if (arguments.flag("adapter")) {
    family = nn::export_adapter(*loaded.model, to);
  } else {
    loaded.model->parameters().decode_blocks();
    loaded.model->merge_adapters();
    family = nn::export_model(*loaded.model, to, most << 20, tokens_of(loaded));
    RunFolder::export_tokenizer(arguments.plain()[0], to);
  }
  report(arguments, loaded, family, "folder", to);
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  arguments.given("gguf") ? write_gguf(arguments) : write_folder(arguments);
}

const Register command{
    {.name = "export",
     .summary = "writes a run's model as a Hugging Face folder or a GGUF file",
     .usage = {"RUN --out DIR [--adapter] [--step N]", "RUN --gguf FILE [--type TYPE] [--step N]"},
     .options = join(
         {{"out", "DIR",
           "output folder for config.json, model.safetensors and the run's tokenizer"},
          {"adapter", "", "write only the LoRA matrices, in the format of the Python package peft"},
          {"gguf", "FILE",
           "output file in the GGUF format, with the run's tokenizer and chat template"},
          {"type", "TYPE", text("with --gguf, the type of the matrices: ", written_gguf_types()),
           "f16"},
          {"part_mib", "N", "maximum size of a weight file, in MiB; 0: no limit", "0"}},
         join(run_options(), {json_option()})),
     .examples = {"export runs/flip-flop-1 --out flip-flop-hf",
                  "export runs/chat --gguf chat.gguf --type q8_0"},
     .notes = "The architecture of the model determines the format. Models with learned\n"
              "positions are written as GPT-2. Models with rotary positions and LayerNorm are\n"
              "written as GPT-NeoX. Models with rotary positions, RMS norms and gated\n"
              "feed-forward layers are written as Llama by default, as Qwen 2 if only queries,\n"
              "keys and values have biases, and as Gemma 3 if each sublayer also has a norm\n"
              "after it. Other models are refused, for example models with heads other than\n"
              "softmax. GGUF files cannot contain GPT-NeoX models.\n"
              "With --type q4_k, a matrix is stored as q8_0 if the length of its rows is a\n"
              "multiple of 32, but not of 256. The output counts these matrices.\n"
              "LoRA matrices are merged into the weights unless --adapter is given. If the run\n"
              "defines tokens that begin and end a text, the written files name these tokens.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::export_command
