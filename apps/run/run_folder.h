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
#include "nn/training/trainer.h"

namespace longhand::app {

/// The files of a run:
///   config.ini       everything it depends on
///   data.json        of a run of text: size and checksum of each file that it learns from
///   tokenizer/       of a run of text: its tokenizer's files
///   metrics.jsonl    one object a line: a step's figures, or an evaluation's
///   events.*         the same numbers for TensorBoard
///   checkpoints/     step-N folders
///   report.html      when it is done
///   lock             while a process writes to it
class RunFolder {
 public:
  /// A new run. The folder must not contain one. Nothing is written before open(). `start` is a
  /// checkpoint of another run from which the model starts.
  static RunFolder create(const std::filesystem::path& path, const Config& config,
                          std::optional<std::filesystem::path> start = {});
  /// An existing run.
  explicit RunFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  static std::filesystem::path tokenizer(const std::filesystem::path& run) {
    return run / "tokenizer";
  }
  /// Copies the tokenizer's files of a run that has one to another folder.
  static void export_tokenizer(const std::filesystem::path& run, const std::filesystem::path& to);
  const Config& config() const { return config_; }
  const std::optional<std::filesystem::path>& start() const { return start_; }

  /// Makes the folder if it is new, holds it open and locks it, and removes temporary files that
  /// killed processes left. From here on all is written to this folder, wherever its path leads.
  /// `values` are those that a new run begins with, where they are not the seed's: they are in its
  /// checkpoint of step 0 before config.ini makes the folder a run. `data` is what data.json says
  /// of the files that it learns from; one that is there stays.
  void open(const nn::Parameters* values = nullptr, const std::vector<RunData>& data = {});
  /// Opens metrics.jsonl and an events file for appending. Lines after the checkpoint of `step` are
  /// dropped, and an evaluation at `step` unless `evaluated`.
  void open_logs(std::int64_t step, bool evaluated = true);
  void log(const Json& line);  // {"step": ..., ...}; numbers also go to the events file
  void write_report(const std::string& page);

  /// True if the path still leads to the folder that is held open.
  bool in_place() const { return folder_->in_place(); }
  void require_in_place() const { folder_->require_in_place(); }

  /// Reads metrics.jsonl; `take` is called for each line that is not damaged.
  Metrics read_metrics(const std::function<void(const Json&)>& take = {}) const;
  std::vector<Json> metrics() const;  // its lines, but for damaged ones

 private:
  RunFolder(std::filesystem::path path, Config config, std::optional<std::filesystem::path> start)
      : path_(std::move(path)),
        config_(std::move(config)),
        start_(std::move(start)),
        fresh_(true) {}

  std::filesystem::path path_;
  Config config_;
  std::optional<std::filesystem::path> start_;
  bool fresh_ = false;  // the folder must not contain a run yet
  std::optional<Folder> folder_;
  std::optional<FolderLock> lock_;
  FileDescriptor metrics_;
  std::unique_ptr<EventsFile> events_;
};

struct LoadOptions {
  std::optional<std::int64_t> step = {};            // default: the best, otherwise the latest
  std::map<std::string, std::string> compute = {};  // backend, threads, math; default: the run's
  std::optional<DType> matrices = {};               // f32 or bf16; default: as stored
};

/// The step of a run's checkpoint: the given one, which must exist, otherwise the best, otherwise
/// the latest.
std::int64_t find_step(const RunFolder& run, std::optional<std::int64_t> step);

/// A run's model with the parameters of a checkpoint.
struct LoadedRun {
  Config config;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<tasks::Task> task;
  std::unique_ptr<nn::Decoder> model;
  std::int64_t step = 0;
};
LoadedRun load_run(const std::filesystem::path& path, const LoadOptions& options = {});
/// The same for continuing prompts. Throws an Error if heads are reinforced, because prompts have
/// no reference.
LoadedRun load_run_for_prompts(const std::filesystem::path& path, const LoadOptions& options);

/// The flags of commands that read a run: --step, --backend, --threads, --math, --weights.
std::vector<Option> run_options();
LoadOptions load_options(const Arguments& arguments);

}  // namespace longhand::app
