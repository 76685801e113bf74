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

/// The number of positions from which random position ids are drawn. It is that of the paper that
/// introduced these ids (arXiv:2305.16843).
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
  /// A configuration with the default values of a task, including those of the task's options.
  /// `task` names a kind of task, or a folder or list of the user's own files.
  explicit Config(std::string_view task);

  /// Reads a config.ini. Throws an Error that names the line if a section or key is unknown.
  static Config read(const std::filesystem::path& file);
  static Config read(const FileDescriptor& file, const std::string& source);
  static Config parse(std::string_view ini, const std::string& source);
  /// The configuration that the flags of the command `train` describe. The flags override the file
  /// of --config, or the defaults if there is no such file. The result is checked.
  static Config from(const Arguments& arguments);
  /// The configuration of a new run with the model and the compute settings of `run`. If `task` is
  /// of the same kind as the run's task, the settings of the task are kept too. Otherwise only the
  /// tokenizer and the chat template are kept. All other settings have their defaults.
  static Config from_run(const Config& run, std::string_view task);
  /// The configuration of a new run with the model and the compute settings of `run`. The flag
  /// --task selects the task (default: the run's task), and the other flags of the command `train`
  /// are applied. The result is checked.
  static Config from_run(const Config& run, const Arguments& arguments);
  /// Applies the given flags. If settings depend on the task's files, also reads these files. Does
  /// not check the result.
  void set_flags(const Arguments& arguments);
  /// Reads the task's files and sets the settings that depend on them (TaskKind::complete).
  void read_files();
  std::string ini() const;
  /// The keys and values of all settings, in the order of config.ini.
  std::vector<std::pair<std::string, std::string>> settings() const;

  /// The sections [model], [training] and [compute] as structs. If a value is invalid, throws an
  /// Error, or a UsageError if a flag set the value.
  ModelSettings model_settings() const;
  TrainingSettings training() const;
  ComputeSettings compute() const;

  /// The value of the setting with this key, as text.
  const std::string& text(std::string_view key) const { return settings_[index_of(key)].value; }
  /// Sets the value of a setting. Error messages about the value name its source `origin`, such as
  /// "--rate" or "run.ini:7".
  void set(std::string_view key, std::string value, std::string origin = {});
  /// Adds a file to the task as a distribution on which the run's model can be scored. Returns the
  /// distribution's name. Throws an Error unless the task is `text` or `files`.
  std::string add_file(const std::string& path);
  bool knows(std::string_view key) const;
  // True if the setting has its default because nothing set it.
  bool is_default(std::string_view key) const { return origin(key).empty(); }

  const tasks::TaskKind& kind() const { return tasks::task_kind(text("task.name")); }
  /// All distributions of the configured task. The first is the training distribution.
  std::vector<tasks::Distribution> distributions() const;
  /// The distributions whose main metric can rank runs, in order of preference: validation sets,
  /// test sets out of distribution (names that begin with "ood"), other test sets, and last the
  /// training distribution. The set `id` and sets that are not compared (Distribution::compared)
  /// come just before the training distribution.
  std::vector<std::string> ranking_distributions() const;
  /// The name of the task in titles: its kind or, for the user's own files, the name of the file or
  /// folder.
  std::string task_title() const;
  tasks::OptionValues task_values() const;
  /// The task with the configured options. If a distribution is named, its changes of the options
  /// are applied.
  std::unique_ptr<tasks::Task> task(std::string_view distribution = {}) const;
  /// Wraps a task of the run's kind so that its samples have the positions that the model requires.
  std::unique_ptr<tasks::Task> positioned(std::unique_ptr<tasks::Task> task) const;
  nn::DecoderConfig model(const tasks::Task& task) const;
  nn::MixerOptions mixer_options() const;  // the options of all mixers
  /// Changes the settings so that model() returns `model` for any task that has the vocabulary and
  /// the outputs of `model`.
  void set_model(const nn::DecoderConfig& model);
  /// False if all parameters are trained, true if some are, as with LoRA.
  bool trains_few() const;
  nn::Storage storage() const;  // storage of the model's parameters during training
  /// learned() returns the task with the distribution training.train_on, and batches() the training
  /// batches of this task.
  std::shared_ptr<const tasks::Task> learned() const;
  nn::BatchSource batches(std::shared_ptr<const tasks::Task> learned) const;
  /// Reads every setting once. An invalid value is thereby reported with its origin before any file
  /// is written. Throws UsageError if a flag set the value.
  void check() const;

 private:
  void set_files(const std::string& files);
  /// The model's number of positions: model.longest or, if it is 0, as many as the task needs.
  std::int64_t longest_for(const tasks::Task& task) const;
  struct Setting {
    std::string key, value;
    std::string origin = {};  // source of the value; empty: the value is the default
  };
  std::size_t index_of(std::string_view key) const;
  const std::string& origin(std::string_view key) const { return settings_[index_of(key)].origin; }
  /// Throws an Error with `message`, which concerns the value of `setting`. If a flag set the
  /// value, throws a UsageError, and a setting's name at the beginning of the message is replaced
  /// by its flag.
  [[noreturn]] void refuse(const Setting& setting, const std::string& message) const;
  /// Sets the variables that belong to `options` to the configured values of a section. If a value
  /// is invalid, throws an Error that names the origin of the value.
  void assign(const nn::Options& options, std::string_view section) const;
  template <class Settings>
  Settings parsed(std::string_view section) const {
    Settings settings;
    nn::Options options(std::string(section) + ".");
    settings.declare(options);
    assign(options, section);
    return settings;
  }
  /// The message of an Error if settings contradict each other. Empty if they do not.
  std::string contradiction() const;

  std::vector<Setting> settings_;
};

/// The flags of all settings: --width for model.width, --task for task.name, --task.p for task.p.
/// The short help shows --task and the keys in `shown`. By default, these are the common settings
/// of a training.
std::vector<CliFlag> config_options(std::initializer_list<std::string_view> shown = {});

}  // namespace longhand::app
