#include <algorithm>
#include <iostream>
#include <optional>

#include "apps/run/run_folder.h"
#include "core/atomic_file.h"
#include "core/gguf_file.h"
#include "core/quote.h"
#include "core/safetensors_parts.h"
#include "nn/models/gguf.h"
#include "nn/models/hugging_face.h"
#include "nn/text/chat_template.h"
#include "nn/training/not_finite.h"

namespace longhand::app::import_command {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view gguf_template = "tokenizer.chat_template";

/// A published model in any of the supported formats.
struct Source {
  fs::path path;
  nn::ForeignConfig foreign;
  std::unique_ptr<nn::Weights> weights;
  std::optional<GgufFile> gguf;
};

Source open_source(const fs::path& path) {
  if (fs::is_regular_file(path) && GgufFile::is_gguf(path)) {
    GgufFile file = GgufFile::open(path);
    auto foreign = nn::parse_config(nn::gguf_config(file).dump(), path.string());
    return {path, std::move(foreign), nn::gguf_weights(GgufFile::open(path)), std::move(file)};
  }
  LONGHAND_CHECK(fs::is_directory(path), path.string(),
                 ": expected a folder with a config.json, or a GGUF file, got ",
                 fs::exists(path) ? "something else" : "no such file or folder");
  Source source{path, nn::read_config(path), nn::open_weights(path), std::nullopt};
  // Checks checksums, which only files written by longhand contain.
  SafetensorsParts::open(path, "model").check_sums();
  return source;
}

bool has_tokenizer(const Source& source) {
  if (source.gguf) return source.gguf->has("tokenizer.ggml.model");
  return fs::exists(source.path / "tokenizer.json") ||
         (fs::exists(source.path / "vocab.json") && fs::exists(source.path / "merges.txt"));
}

/// The path of the tokenizer for run `to`. A tokenizer from a GGUF file is first written to the
/// run's folder.
fs::path tokenizer_of(const Source& source, const fs::path& to) {
  if (!source.gguf) return source.path;
  const std::string json = nn::gguf_tokenizer(*source.gguf);
  const fs::path folder = RunFolder::tokenizer(to);
  fs::create_directories(folder);
  write_atomically(folder / "tokenizer.json", json);
  if (source.gguf->has(gguf_template)) {
    write_atomically(folder / "chat_template.jinja", source.gguf->string(gguf_template));
  }
  return folder;
}

/// The name of the source's chat template. An unknown template gives "none" and a warning.
std::string chat_template_of(const Source& source) {
  std::string jinja;
  if (!source.gguf) {
    jinja = nn::ChatTemplate::jinja_of(source.path);
  } else if (source.gguf->has(gguf_template)) {
    jinja = source.gguf->string(gguf_template);
  }
  if (jinja.empty()) return "none";
  try {
    return std::string(nn::ChatTemplate::recognize(jinja, source.path.string()));
  } catch (const Error& error) {
    std::cerr << "longhand import: warning: " << printable(error.what()) << '\n';
    return "none";
  }
}

/// The run's settings: the model's settings come from the source, all others from defaults and
/// flags. The task is text if the source has a tokenizer, otherwise tokens.
Config config_for(const Source& source, const fs::path& to, const Arguments& arguments) {
  const nn::DecoderConfig& model = source.foreign.config;
  const std::string task = arguments.given("task") ? arguments.word("task")
                           : has_tokenizer(source) ? "text"
                                                   : "tokens";
  Config config = as_usage("task", [&] { return Config(task); });
  const bool is_text = task == "text";
  if (is_text && has_tokenizer(source)) {
    config.set("task.tokenizer", tokenizer_of(source, to).string());
    config.set("task.template", chat_template_of(source));
  }
  if (!arguments.given("task")) {
    config.set("task.vocabulary", std::to_string(model.vocabulary));
    std::int64_t length = is_text ? 256 : 64;
    if (model.longest > 0) {
      // Number of tokens that the task adds to a sample's length, such as BOS.
      const std::int64_t beside = is_text ? config.task()->longest() - length : 0;
      length = std::clamp<std::int64_t>(model.longest - beside, 1, length);
    }
    config.set("task.length", std::to_string(length));
  }
  if (is_text) {
    std::string ends;
    for (const std::int32_t token : source.foreign.ends) {
      ends += (ends.empty() ? "" : ",") + std::to_string(token);
    }
    if (!ends.empty()) config.set("task.end", ends);
  }
  config.set_model(model);
  config.set_flags(arguments);
  config.check();
  const auto made = config.task();
  LONGHAND_CHECK(made->vocabulary().size() == model.vocabulary, "task ", task,
                 ": expected the model's vocabulary of ", model.vocabulary, " tokens, got ",
                 made->vocabulary().size());
  return config;
}

/// Initializes the parameters that the source does not contain, such as those of LoRA and of other
/// kinds of heads.
void initialize_others(const nn::Parameters& parameters, std::span<const nn::Exchange> tensors) {
  for (const nn::Parameter& parameter : parameters.all()) {
    const bool read = std::ranges::find(tensors, parameter, &nn::Exchange::ours) != tensors.end();
    if (!read) parameters.initialize(parameter);
  }
}

/// Warns if parameters contain NaN or infinity: the model can be inspected but not trained.
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
  if (arguments.plain().size() != 1) {
    wrong_usage("expected one folder with a config.json, or a GGUF file");
  }
  const fs::path from = arguments.plain()[0], to = arguments.word("out");
  const Source source = open_source(from);
  const nn::ForeignConfig& foreign = source.foreign;
  nn::require_enough(*source.weights, foreign.config);
  LONGHAND_CHECK(!fs::exists(to / "config.ini"), to.string(), ": already holds a run");
  const bool fresh = !fs::exists(to);
  std::int64_t parameters = 0;
  try {
    RunFolder folder = RunFolder::create(to, config_for(source, to, arguments));
    const Config& config = folder.config();
    const auto backend = config.compute().make();
    nn::Storage storage{.initial = false};
    if (source.weights->matrices_are_bf16() && nn::supports(*backend, DType::bf16)) {
      storage.matrices = DType::bf16;
    }
    const nn::Decoder model(*backend, config.model(*config.task()), config.training().seed,
                            storage);
    const std::vector<nn::Exchange> tensors = foreign.family->tensors(model);
    initialize_others(model.parameters(), tensors);
    nn::read_tensors(*source.weights, tensors);
    warn_of_nonfinite(model.parameters());
    folder.open(&model.parameters());
    folder.open_logs(0);
    parameters = model.parameters().count();
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
     .summary = "converts a GPT-2, GPT-NeoX, Llama, Qwen 2 or Gemma 3 into a run",
     .usage = {"DIR|FILE.gguf --out RUN [--task NAME] [flags]"},
     .options =
         join({{"out", "RUN", "the run folder"}}, join(config_options({"task"}), {json_option()})),
     .examples = {"import gpt2 --out runs/gpt2", "generate runs/gpt2 --prompt \"The dog\"",
                  "import gpt2 --out runs/chained --heads chacal:12 --gamma 0.1"},
     .notes =
         "Reads config.json and model.safetensors, or the shards of\n"
         "model.safetensors.index.json, in f32, f16 or bf16. Also reads a GGUF file of a\n"
         "Llama, Qwen 2 or Gemma 3, quantized or not. If the source has a tokenizer\n"
         "(tokenizer.json, or vocab.json and merges.txt), the run's task is text. Otherwise,\n"
         "without --task, the task is tokens. The task must have the model's vocabulary. Other\n"
         "options change the run's settings, including the kinds of heads.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::import_command
