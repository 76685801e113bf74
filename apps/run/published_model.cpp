#include "apps/run/published_model.h"

#include <stdlib.h>

#include <algorithm>
#include <iostream>

#include "core/atomic_file.h"
#include "core/quote.h"
#include "core/safetensors_parts.h"
#include "nn/models/gguf.h"
#include "nn/models/gguf_names.h"
#include "nn/text/chat_template.h"

namespace longhand::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view gguf_template = "tokenizer.chat_template";

bool has_tokenizer(const PublishedModel& model) {
  constexpr std::string_view key = "tokenizer.ggml.model";
  if (model.gguf) return model.gguf->has(key) && model.gguf->string(key) != nn::gguf_no_tokenizer;
  return fs::exists(model.path / "tokenizer.json") ||
         (fs::exists(model.path / "vocab.json") && fs::exists(model.path / "merges.txt"));
}

/// The path of the tokenizer for the run in folder `to`. A tokenizer from a GGUF file is first
/// written to this folder.
fs::path tokenizer_of(const PublishedModel& model, const fs::path& to) {
  if (!model.gguf) return model.path;
  const std::string json = nn::gguf_tokenizer(*model.gguf);
  const fs::path folder = RunFolder::tokenizer(to);
  fs::create_directories(folder);
  write_atomically(folder / "tokenizer.json", json);
  if (model.gguf->has(gguf_template)) {
    write_atomically(folder / "chat_template.jinja", model.gguf->string(gguf_template));
  }
  return folder;
}

/// The name of the model's chat template. For an unknown template, warns and returns "none".
std::string chat_template_of(const PublishedModel& model) {
  std::string jinja;
  if (!model.gguf) {
    jinja = nn::ChatTemplate::jinja_of(model.path);
  } else if (model.gguf->has(gguf_template)) {
    jinja = model.gguf->string(gguf_template);
  }
  if (jinja.empty()) return "none";
  try {
    return std::string(nn::ChatTemplate::recognize(jinja, model.path.string()));
  } catch (const Error& error) {
    std::cerr << "longhand: warning: " << printable(error.what()) << '\n';
    return "none";
  }
}

/// Initializes the parameters that the published model does not contain, such as those of LoRA and
/// the additional parameters of heads that are not softmax heads.
void initialize_others(const nn::Parameters& parameters, std::span<const nn::Exchange> tensors) {
  for (const nn::Parameter& parameter : parameters.all()) {
    const bool read = std::ranges::find(tensors, parameter, &nn::Exchange::ours) != tensors.end();
    if (!read) parameters.initialize(parameter);
  }
}

/// A folder for temporary files, which is removed with its contents.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "longhand-XXXXXX").string();
    LONGHAND_CHECK(::mkdtemp(name.data()) != nullptr, name, ": cannot be created");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool is_published(const fs::path& path) {
  if (fs::is_directory(path)) {
    return fs::exists(path / "config.json") && !fs::exists(path / "config.ini");
  }
  LONGHAND_CHECK(path.extension() != ".gguf" || fs::exists(path), path.string(),
                 ": expected a run folder or a GGUF file, but there is no such file");
  return fs::is_regular_file(path) && GgufFile::is_gguf(path);
}

LoadedRun load_published(const fs::path& path, const LoadOptions& options) {
  LONGHAND_CHECK(
      !options.step, path.string(),
      ": expected a run folder, because --step selects a checkpoint, got a published model");
  const PublishedModel published = open_published(path);
  nn::require_enough(*published.weights, published.foreign.config);
  const ScratchFolder folder;
  Config config = config_of(published, folder.path(), nullptr);
  options.change(config);
  auto backend = config.compute().make();
  auto task = config.task();
  auto model = read_published(published, config, *backend, options.weights);
  return {std::move(config), std::move(backend), std::move(task), std::move(model), 0};
}

}  // namespace

PublishedModel open_published(const fs::path& path) {
  if (fs::is_regular_file(path) && GgufFile::is_gguf(path)) {
    const auto file = std::make_shared<const GgufFile>(GgufFile::open(path));
    auto foreign = nn::parse_config(nn::gguf_config(*file).dump(), path.string());
    return {path, std::move(foreign), nn::gguf_weights(file), file};
  }
  LONGHAND_CHECK(fs::is_directory(path), path.string(),
                 ": expected a folder with a config.json, or a GGUF file, ",
                 fs::exists(path) ? "got another file" : "but there is no such file or folder");
  PublishedModel model{path, nn::read_config(path), nn::open_weights(path), nullptr};
  // Compares the contents of the files with their checksums. Only files written by longhand have
  // checksums.
  SafetensorsParts::open(path, "model").check_sums();
  return model;
}

Config config_of(const PublishedModel& published, const fs::path& folder,
                 const Arguments* arguments) {
  const nn::DecoderConfig& model = published.foreign.config;
  const bool given = arguments && arguments->given("task");
  const std::string task = given                      ? arguments->word("task")
                           : has_tokenizer(published) ? "text"
                                                      : "tokens";
  Config config = as_usage("task", [&] { return Config(task); });
  const bool is_text = task == "text";
  if (is_text && has_tokenizer(published)) {
    config.set("task.tokenizer", tokenizer_of(published, folder).string());
    config.set("task.template", chat_template_of(published));
  }
  if (!given) {
    config.set("task.vocabulary", std::to_string(model.vocabulary));
    std::int64_t length = is_text ? 256 : 64;
    if (model.longest > 0) {
      // Number of tokens that the task adds to a sample, such as BOS.
      const std::int64_t beside = is_text ? config.task()->longest() - length : 0;
      length = std::clamp<std::int64_t>(model.longest - beside, 1, length);
    }
    config.set("task.length", std::to_string(length));
  }
  if (is_text) {
    std::string ends;
    for (const std::int32_t token : published.foreign.ends) {
      ends += (ends.empty() ? "" : ",") + std::to_string(token);
    }
    if (!ends.empty()) config.set("task.end", ends);
  }
  config.set_model(model);
  if (arguments) config.set_flags(*arguments);
  config.check();
  const auto made = config.task();
  LONGHAND_CHECK(made->vocabulary().size() == model.vocabulary, "task ", task,
                 ": expected the model's vocabulary of ", model.vocabulary,
                 " tokens, got a vocabulary of ", made->vocabulary().size(), " tokens");
  return config;
}

std::unique_ptr<nn::Decoder> read_published(const PublishedModel& published, const Config& config,
                                            Backend& backend, const WeightForm& form) {
  nn::Storage storage{.matrices = form.matrices, .initial = false, .deferred = form.as_stored};
  if (!form.matrices && published.weights->matrices_are_bf16() &&
      nn::supports(backend, DType::bf16)) {
    storage.matrices = DType::bf16;
  }
  auto model = std::make_unique<nn::Decoder>(backend, config.model(*config.task()),
                                             config.training().seed, storage);
  const std::vector<nn::Exchange> tensors = published.foreign.family->tensors(*model);
  initialize_others(model->parameters(), tensors);
  if (form.as_stored) {
    nn::read_tensors_in_blocks(*published.weights, tensors,
                               storage.matrices.value_or(model->parameters().type()));
  } else {
    nn::read_tensors(*published.weights, tensors);
  }
  put_in_blocks(*model, form, published.path.string());
  return model;
}

LoadedRun load_for_prompts(const fs::path& path, const LoadOptions& options) {
  return is_published(path) ? load_published(path, options) : load_run_for_prompts(path, options);
}

}  // namespace longhand::app
