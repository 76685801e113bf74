#include "apps/run/run_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/atomic_file.h"
#include "core/mapped_file.h"
#include "core/quote.h"
#include "tasks/text_vocabulary.h"

namespace longhand::app {
namespace fs = std::filesystem;

namespace {

const std::string config_file = "config.ini";
constexpr std::string_view tokenizer_setting = "task.tokenizer";

/// Copies the files of a tokenizer. `from` is a tokenizer.json, or a folder with tokenizer files.
void copy_tokenizer_files(const fs::path& from, const Folder& folder) {
  const auto copy = [&](const fs::path& file, const char* name) {
    const MappedFile mapped(file);
    AtomicFile made(folder, name);
    made.write(mapped.bytes());
    made.commit();
  };
  if (!fs::is_directory(from)) return copy(from, "tokenizer.json");
  const bool is_json = fs::exists(from / "tokenizer.json");
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json",
                           "chat_template.jinja"}) {
    const bool is_other_form = is_json && (name == std::string_view("vocab.json") ||
                                           name == std::string_view("merges.txt"));
    if (fs::exists(from / name) && !is_other_form) copy(from / name, name);
  }
}

/// Copies the tokenizer into the run's folder, so that the run needs no tokenizer files outside its
/// folder.
void copy_tokenizer(const Folder& run, const fs::path& from) {
  const fs::path to = RunFolder::tokenizer(run.path());
  const Folder folder = run.make_folder(to.filename().string());
  // If `from` is the run's own tokenizer, there is nothing to copy.
  if (!fs::equivalent(from, to)) copy_tokenizer_files(from, folder);
}

Config config_in(const fs::path& folder) {
  require_run(folder);
  Config config = Config::read(folder / config_file);
  if (config.knows(tokenizer_setting) && fs::exists(RunFolder::tokenizer(folder))) {
    config.set(tokenizer_setting, RunFolder::tokenizer(folder).string());
  }
  config.check();
  return config;
}

}  // namespace

void require_run(const fs::path& folder) {
  if (fs::exists(folder / config_file)) return;
  const fs::file_status status = fs::status(folder);
  const std::string name = folder.string();
  if (!fs::exists(status)) fail(name, ": expected a run folder, but there is no such folder");
  if (fs::is_directory(status))
    fail(name, ": expected a run folder, but the folder has no config.ini");
  fail(name, ": expected a run folder, got a file",
       folder.extension() == ".gguf" ? "; `longhand import` makes a run of a GGUF file" : "");
}

RunFolder::RunFolder(fs::path path) : path_(std::move(path)), config_(config_in(path_)) {}

void RunFolder::export_tokenizer(const fs::path& run, const fs::path& to) {
  const fs::path from = tokenizer(run);
  if (fs::exists(from)) copy_tokenizer_files(from, Folder::make(to));
}

RunFolder RunFolder::create(const fs::path& path, const Config& config,
                            std::optional<fs::path> start) {
  LONGHAND_CHECK(!path.empty(), "run folder: expected a non-empty name");
  LONGHAND_CHECK(!fs::exists(path / config_file), path.string(),
                 ": the folder already holds a run; continue the run with --resume");
  config.check();
  return {path, config, std::move(start)};
}

void RunFolder::extend(std::int64_t steps) {
  former_steps_ = config_.training().schedule.steps;
  config_.set("training.steps", std::to_string(steps));
  config_.check();
}

void RunFolder::open(const nn::Parameters* values, const std::vector<RunData>& data,
                     bool transcribed) {
  Folder folder = Folder::make(path_);
  FolderLock lock(folder);
  for (const std::string& name : folder.names()) {
    if (is_temporary(name)) folder.remove(name);
  }
  const bool there = folder.contains(config_file);
  LONGHAND_CHECK(there != fresh_, path_.string(), ": ",
                 there ? "the folder already holds a run; continue the run with --resume"
                       : "the run was removed");
  if (fresh_ && config_.knows(tokenizer_setting) &&
      tasks::names_tokenizer(config_.text(tokenizer_setting))) {
    copy_tokenizer(folder, config_.text(tokenizer_setting));
  }
  if (fresh_ && values) {
    nn::CheckpointStore(checkpoints(), 1, config_.training().most_file_bytes()).save({}, *values);
  }
  if (!data.empty() && (fresh_ || !folder.contains(data_file))) {
    write_atomically(folder, data_file, data_json(data));
  }
  if (fresh_ && transcribed) write_atomically(folder, transcript_file, "");
  if (fresh_) write_atomically(folder, config_file, config_.ini());
  if (former_steps_) {
    Config written = Config::read(path_ / config_file);
    written.set("training.steps", config_.text("training.steps"));
    write_atomically(folder, config_file, written.ini());
  }
  fresh_ = false;
  folder_ = std::move(folder);
  lock_.emplace(std::move(lock));
}

void RunFolder::write_origin(std::string_view origin) {
  write_atomically(*folder_, "origin", text(origin, '\n'));
}

void RunFolder::open_logs(std::int64_t step, bool evaluated) {
  LONGHAND_CHECK(folder_, path_.string(),
                 ": expected the run folder to be locked before its logs are opened");
  metrics_ = open_metrics(*folder_, step, evaluated);
  events_ = std::make_unique<EventsFile>(*folder_);
}

void RunFolder::log(const Json& line) {
  const std::string text = line.dump() + "\n";
  const ssize_t written = ::write(metrics_.get(), text.data(), text.size());
  LONGHAND_CHECK(written == static_cast<ssize_t>(text.size()), (path_ / "metrics.jsonl").string(),
                 ": cannot be written: ", written < 0 ? std::strerror(errno) : "disk full");
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : line.members()) {
    if (name != "step" && value.is_number()) scalars.emplace_back(name, value.number());
  }
  events_->add(line["step"].integer(), scalars);
}

void RunFolder::write_report(const std::string& page) {
  write_atomically(*folder_, "report.html", page);
}

Metrics RunFolder::read_metrics(const std::function<void(const Json&)>& take) const {
  return app::read_metrics(folder_ ? *folder_ : Folder(path_), take);
}

std::vector<Json> RunFolder::metrics() const {
  std::vector<Json> lines;
  read_metrics([&](const Json& line) { lines.push_back(line); });
  return lines;
}

std::vector<CliFlag> run_options() {
  return {
      {"step", "N",
       "load the checkpoint of step N; default: the best, or the latest if none is marked as best"},
      {"backend", "NAME", "backend: reference, cpu or cuda; default: the run's"},
      {"threads", "N", text(threads_help, "; default: the run's")},
      {"math", "MODE", text(math_help, "; default: the run's")},
      {"weights", "FORM",
       text("form of the weight matrices: f32, bf16, ", written_block_types(),
            ", or file: as they are stored; default: file, but f32 for GGUF files with blocks")}};
}

LoadOptions load_options(const Arguments& arguments) {
  LoadOptions options;
  if (arguments.given("step")) options.step = arguments.integer("step", 0, longest_training);
  for (const char* flag : {"backend", "threads", "math"}) {
    if (arguments.given(flag)) options.compute[flag] = arguments.word(flag);
  }
  if (arguments.given("weights")) {
    options.weights = weight_form(arguments.word("weights"));
  }
  return options;
}

std::int64_t find_step(const RunFolder& run, std::optional<std::int64_t> step) {
  const nn::CheckpointStore store(run.checkpoints(), 1);
  if (!step) step = store.best() ? store.best() : store.latest();
  LONGHAND_CHECK(step, run.path().string(), ": the run has no checkpoint");
  LONGHAND_CHECK(fs::exists(store.path(*step)), run.path().string(),
                 ": the run has no checkpoint of step ", *step);
  return *step;
}

void LoadOptions::change(Config& config) const {
  for (const auto& [flag, value] : compute) config.set("compute." + flag, value, "--" + flag);
  config.check();
}

LoadedRun load_run(const fs::path& path, const LoadOptions& options) {
  const RunFolder folder(path);
  Config config = folder.config();
  options.change(config);
  const std::int64_t step = find_step(folder, options.step);
  const fs::path checkpoint = nn::CheckpointStore(folder.checkpoints(), 1).path(step);

  auto backend = config.compute().make();
  auto task = config.task();
  nn::Storage storage{.matrices = options.weights.matrices, .initial = false};
  storage.deferred = !storage.matrices && nn::has_blocks(checkpoint);
  if (!storage.matrices && nn::supports(*backend, DType::bf16) &&
      nn::has_bf16_matrices(checkpoint)) {
    storage.matrices = DType::bf16;
  }
  auto model =
      std::make_unique<nn::Decoder>(*backend, config.model(*task), config.training().seed, storage);
  nn::load_checkpoint(checkpoint, model->parameters());
  put_in_blocks(*model, options.weights, path.string());
  return {std::move(config), std::move(backend), std::move(task), std::move(model), step};
}

LoadedRun load_run_for_prompts(const fs::path& path, const LoadOptions& options) {
  LoadedRun loaded = load_run(path, options);
  LONGHAND_CHECK(!loaded.model->wants_reference(), path.string(),
                 ": expected a run without reinforced heads, because a prompt does not state "
                 "which tokens these heads should attend to");
  return loaded;
}

}  // namespace longhand::app
