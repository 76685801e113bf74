#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/report.h"
#include "apps/run/config.h"
#include "apps/run/data_files.h"
#include "apps/run/events.h"
#include "apps/run/folder_lock.h"
#include "apps/run/metrics_file.h"
#include "apps/run/weight_form.h"
#include "nn/training/trainer.h"

namespace longhand::app {

inline const std::string transcript_file = "transcript.jsonl";

/// Throws an Error if the path is not a folder with a config.ini. The Error states the reason.
void require_run(const std::filesystem::path& folder);

/// The folder of a run. It contains these files:
///   config.ini       every setting on which the run depends
///   origin           "imported", "repaired" or "quantized" if the run's parameters were not
///   trained by the run data.json        for runs on text: size and checksum of each data file
///   tokenizer/       for runs on text: the tokenizer's files
///   metrics.jsonl    one JSON object per line: the figures of a step or of an evaluation
///   events.*         the same numbers for TensorBoard
///   transcript.jsonl for runs with --transcript: what `longhand verify` checks
///   checkpoints/     folders step-N
///   report.html      written when training has finished
///   lock             exists while a process writes to the folder
class RunFolder {
 public:
  /// A new run. The folder must not contain a run. Before open(), no file is written. `start` is a
  /// checkpoint of another run, from which the model starts.
  static RunFolder create(const std::filesystem::path& path, const Config& config,
                          std::optional<std::filesystem::path> start = {});
  /// An existing run.
  explicit RunFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  static std::filesystem::path tokenizer(const std::filesystem::path& run) {
    return run / "tokenizer";
  }
  /// Copies the tokenizer files of a run to another folder. Copies nothing if the run has no
  /// tokenizer.
  static void export_tokenizer(const std::filesystem::path& run, const std::filesystem::path& to);
  const Config& config() const { return config_; }
  const std::optional<std::filesystem::path>& start() const { return start_; }

  /// Sets the number of steps of an existing run. open() then writes the new config.ini.
  void extend(std::int64_t steps);
  /// The number of steps before extend(). No value if extend() was not called.
  std::optional<std::int64_t> former_steps() const { return former_steps_; }

  /// Creates the folder if it does not exist, opens and locks it, and removes temporary files of
  /// killed processes. After this call, all files are written to this folder even if its path
  /// changes. `values` are the initial parameters of a new run if they are not drawn from the seed.
  /// They are stored in the checkpoint of step 0, before config.ini marks the folder as a run.
  /// `data` is written to data.json unless this file exists. If `transcribed`, a new run gets an
  /// empty transcript.jsonl, so that a resumed run writes a transcript too.
  void open(const nn::Parameters* values = nullptr, const std::vector<RunData>& data = {},
            bool transcribed = false);
  /// The folder that open() opened.
  const Folder& opened() const { return *folder_; }
  /// Records how the parameters of step 0 were made: "imported", "repaired" or "quantized".
  void write_origin(std::string_view origin);
  /// Opens metrics.jsonl and an events file for appending. Lines after `step` are removed. The
  /// evaluation at `step` is also removed, unless `evaluated`.
  void open_logs(std::int64_t step, bool evaluated = true);
  /// `line` is {"step": ..., ...}. Its numbers are also written to the events file.
  void log(const Json& line);
  void write_report(const std::string& page);

  /// True if the path still leads to the folder that was opened.
  bool in_place() const { return folder_->in_place(); }
  void require_in_place() const { folder_->require_in_place(); }

  /// Reads metrics.jsonl and calls `take` for each undamaged line.
  Metrics read_metrics(const std::function<void(const Json&)>& take = {}) const;
  std::vector<Json> metrics() const;  // the undamaged lines of metrics.jsonl

 private:
  RunFolder(std::filesystem::path path, Config config, std::optional<std::filesystem::path> start)
      : path_(std::move(path)),
        config_(std::move(config)),
        start_(std::move(start)),
        fresh_(true) {}

  std::filesystem::path path_;
  Config config_;
  std::optional<std::filesystem::path> start_;
  std::optional<std::int64_t> former_steps_ = {};
  bool fresh_ = false;  // true if the folder must not contain a run yet
  std::optional<Folder> folder_;
  std::optional<FolderLock> lock_;
  FileDescriptor metrics_;
  std::unique_ptr<EventsFile> events_;
};

struct LoadOptions {
  /// Step of the checkpoint. By default the best checkpoint. If none is marked as best, the latest
  /// one.
  std::optional<std::int64_t> step = {};
  /// Overrides of backend, threads and math. By default, the run's settings are used.
  std::map<std::string, std::string> compute = {};
  WeightForm weights = {};

  void change(Config& config) const;  // applies `compute`
};

/// The step of the checkpoint to load. If a step is given, it must exist. By default the best
/// checkpoint. If none is marked as best, the latest one.
std::int64_t find_step(const RunFolder& run, std::optional<std::int64_t> step);

/// A run's model with the parameters of one of its checkpoints.
struct LoadedRun {
  Config config;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<tasks::Task> task;
  std::unique_ptr<nn::Decoder> model;
  std::int64_t step = 0;
};
LoadedRun load_run(const std::filesystem::path& path, const LoadOptions& options = {});
/// Loads a run whose model continues prompts. Throws an Error if heads are reinforced, because a
/// prompt has no reference attention.
LoadedRun load_run_for_prompts(const std::filesystem::path& path, const LoadOptions& options);

/// The flags of commands that load a run: --step, --backend, --threads, --math, --weights.
std::vector<CliFlag> run_options();
LoadOptions load_options(const Arguments& arguments);

}  // namespace longhand::app
