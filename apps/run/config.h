#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/compute.h"
#include "apps/run/settings.h"
#include "core/file_descriptor.h"
#include "nn/models/decoder.h"
#include "tasks/task.h"

namespace longhand::app {

/// Range of random positions, as published (arXiv:2305.16843)
constexpr std::int64_t random_positions = 2048;

/// Everything on which a training run depends, as text values with keys "section.key". Values come
/// from defaults, then from a config.ini, then from flags. The config.ini in a run's folder
/// contains all values, so that it suffices to repeat the run.
///
///   [task]      name, and the task's own options
///   [model]     width, layers, heads, ...
///   [training]  steps, batch, rate, seed, ...
///   [compute]   backend, threads, math
class Config {
 public:
  /// The default values, including those of the task's options. `task` is a kind of task, or a
  /// folder or list of the user's own files.
  explicit Config(std::string_view task);

  /// Reads a config.ini. An unknown section or key is an Error that names the line.
  static Config read(const std::filesystem::path& file);
  static Config read(const FileDescriptor& file, const std::string& source);
  static Config parse(std::string_view ini, const std::string& source);
  /// The configuration given by the flags of `train`, on top of the file of --config or the
  /// defaults. The result is checked.
  static Config from(const Arguments& arguments);
  /// The configuration of a new run with the model and compute settings of `run`. If the task is of
  /// the same kind, its settings are kept too; otherwise only the tokenizer and chat template are
  /// kept.
  /// All other settings have defaults.
  static Config from_run(const Config& run, std::string_view task);
  /// As above, but with the task selected by the flags of `train` (default: the run's task) and
  /// with the other flags applied. The result is checked.
  static Config from_run(const Config& run, const Arguments& arguments);
  /// Applies the given flags and reads the task's files if settings depend on them. Does not check
  /// the result.
  void set_flags(const Arguments& arguments);
  /// Reads the task's files and sets the settings that depend on them (TaskKind::complete).
  void read_files();
  std::string ini() const;
  /// All keys and values, in order.
  std::vector<std::pair<std::string, std::string>> settings() const;

  /// The sections as structs. Throws an Error about a value, or a UsageError if a flag set it.
  ModelSettings model_settings() const;
  TrainingSettings training() const;
  ComputeSettings compute() const;

  /// A value as text, by its key.
  const std::string& text(std::string_view key) const { return settings_[index_of(key)].value; }
  /// Sets a value. Messages name `origin` as the value's source: "--rate" or "run.ini:7".
  void set(std::string_view key, std::string value, std::string origin = {});
  /// Adds a file that the run did not read to the task, for scoring, and returns the name of its
  /// distribution. Throws an Error unless the task is `text` or `files`.
  std::string add_file(const std::string& path);
  bool knows(std::string_view key) const;
  // True if the setting has its default because nothing set it.
  bool is_default(std::string_view key) const { return origin(key).empty(); }

  const tasks::TaskKind& kind() const { return tasks::task_kind(text("task.name")); }
  /// The distributions of the task with its options. The first is the training distribution.
  std::vector<tasks::Distribution> distributions() const;
  /// The distribution by whose main metric runs are listed and compared: the training distribution,
  /// or, if the user's files contain test samples, the first of them.
  std::string main_distribution() const;
  /// The name of the task for people: its kind, or the folder of the user's own files.
  std::string task_title() const;
  tasks::OptionValues task_values() const;
  /// The training task, or the task of another distribution.
  std::unique_ptr<tasks::Task> task(std::string_view distribution = {}) const;
  /// Wraps a task of the run's kind so that its samples have the positions that the model requires.
  std::unique_ptr<tasks::Task> positioned(std::unique_ptr<tasks::Task> task) const;
  nn::DecoderConfig model(const tasks::Task& task) const;
  nn::MixerOptions mixer_options() const;  // the options of all mixers
  /// Changes the settings so that model() returns `model` for any task that has the vocabulary and
  /// the outputs of `model`.
  void set_model(const nn::DecoderConfig& model);
  nn::Storage storage() const;  // storage of the model's parameters during training
  /// The task in its training distribution, and its batches.
  std::shared_ptr<const tasks::Task> learned() const;
  nn::BatchSource batches(std::shared_ptr<const tasks::Task> learned) const;
  /// Reads every setting once, so that an invalid value is reported with its origin before any file
  /// is written. Throws UsageError if the value came from a flag.
  void check() const;

 private:
  void set_files(const std::string& files);
  /// Maximum number of positions for the task.
  std::int64_t longest_for(const tasks::Task& task) const;
  struct Setting {
    std::string key, value;
    std::string origin = {};  // source of the value; empty: the default
  };
  std::size_t index_of(std::string_view key) const;
  const std::string& origin(std::string_view key) const { return settings_[index_of(key)].origin; }
  /// Sets the members that `options` declares to the values of a section. An Error names the origin
  /// of a value.
  void assign(const nn::Options& options, std::string_view section) const;
  template <class Settings>
  Settings parsed(std::string_view section) const {
    Settings settings;
    nn::Options options(std::string(section) + ".");
    settings.declare(options);
    assign(options, section);
    return settings;
  }
  /// Message of the Error if settings contradict each other; empty if they do not.
  std::string contradiction() const;

  std::vector<Setting> settings_;
};

/// The flags of all settings: --width for model.width, --task for task.name, --task.p for task.p.
/// The one-screen help shows --task and the keys in `shown`; by default it shows the common
/// settings of a training.
std::vector<CliFlag> config_options(std::initializer_list<std::string_view> shown = {});

}  // namespace longhand::app
