#include "apps/run/run_folder.h"

#include <fcntl.h>

#include <cstring>
#include <fstream>

#include "core/atomic_file.h"

namespace longhand::app {
namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  LONGHAND_CHECK(fs::exists(path_ / "config.ini"), path_.string(),
                 ": holds no run (no config.ini)");
}

RunFolder RunFolder::create(const fs::path& path, const Config& config) {
  LONGHAND_CHECK(!fs::exists(path / "config.ini"), path.string(),
                 ": holds a run already; --resume goes on with it");
  config.check();
  std::error_code error;
  fs::create_directories(path, error);
  LONGHAND_CHECK(!error, path.string(), ": cannot be made: ", error.message());
  write_atomically(path / "config.ini", config.ini());
  return RunFolder(path);
}

void RunFolder::open_logs(std::int64_t step) {
  const fs::path file = path_ / "metrics.jsonl";
  std::string kept;
  for (const Json& line : metrics()) {
    if (line.value("step", std::int64_t{0}) <= step) kept += line.dump() + "\n";
  }
  write_atomically(file, kept);
  metrics_ = FileDescriptor(::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  LONGHAND_CHECK(metrics_.valid(), file.string(), ": cannot be written: ", std::strerror(errno));
  events_ = std::make_unique<EventsFile>(path_);
}

void RunFolder::log(const Json& line) {
  const std::string text = line.dump() + "\n";
  const ssize_t written = ::write(metrics_.get(), text.data(), text.size());
  LONGHAND_CHECK(written == static_cast<ssize_t>(text.size()), (path_ / "metrics.jsonl").string(),
                 ": cannot be written: ", written < 0 ? std::strerror(errno) : "disk full");
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : line.items()) {
    if (name != "step" && value.is_number()) scalars.emplace_back(name, value.get<double>());
  }
  events_->add(line.at("step").get<std::int64_t>(), scalars);
}

std::vector<Json> RunFolder::metrics() const {
  std::vector<Json> lines;
  std::ifstream in(path_ / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("step")) lines.push_back(std::move(json));
  }
  return lines;
}

LoadedRun load_run(const fs::path& path, std::optional<std::int64_t> step,
                   const std::map<std::string, std::string>& settings) {
  const RunFolder folder(path);
  Config config = folder.config();
  for (const auto& [key, value] : settings) config.set(key, value);
  auto backend = make_backend(config.text("compute.backend"), config.backend_options());
  auto task = config.task();
  auto model = std::make_unique<nn::Decoder>(*backend, config.model(*task), config.seed());
  const nn::CheckpointStore store(folder.checkpoints(), 1);
  if (!step) step = store.best() ? store.best() : store.latest();
  LONGHAND_CHECK(step, path.string(), ": holds no checkpoint");
  nn::load_checkpoint(store.path(*step), model->parameters());
  return {std::move(config), std::move(backend), std::move(task), std::move(model), *step};
}

}  // namespace longhand::app
