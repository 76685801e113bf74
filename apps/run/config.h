#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/run/batches.h"
#include "core/backend.h"
#include "core/file_descriptor.h"
#include "nn/models/decoder.h"
#include "nn/training/optimizer.h"
#include "nn/training/schedule.h"
#include "tasks/position_ids.h"
#include "tasks/task.h"

namespace longhand::app {

constexpr std::int64_t largest_part_mib = 1 << 20;
constexpr std::int64_t longest_training = std::int64_t{1} << 40;  // maximum steps
constexpr std::int64_t random_positions = 2048;                   // as published (arXiv:2305.16843)

/// Everything that a training run depends on, as text by "section.key". Values come from defaults,
/// then a config.ini, then flags. The file in the run folder is complete, so it alone repeats the
/// run.
///
///   [task]      name, and the task's own options
///   [model]     width, layers, heads, ...
///   [training]  steps, batch, rate, seed, ...
///   [compute]   backend, threads, math
class Config {
 public:
  /// The defaults, including those of the task.
  explicit Config(std::string_view task);

  /// Reads a config.ini. An unknown section or key is an Error that names the line.
  static Config read(const std::filesystem::path& file);
  static Config read(const FileDescriptor& file, const std::string& source);
  static Config parse(std::string_view ini, const std::string& source);
  /// The flags of `train`, over the defaults or the file of --config; checked.
  static Config from(const Arguments& arguments);
  /// Model and compute settings of another run, and its task settings if it has this task,
  /// otherwise its tokenizer and chat template. Everything else has defaults.
  static Config from_run(const Config& run, std::string_view task);
  /// The same with the task from the flags of `train`, or the run's, and with the flags applied;
  /// checked.
  static Config from_run(const Config& run, const Arguments& arguments);
  void set_flags(const Arguments& arguments);  // applies the given flags without checking
  std::string ini() const;
  /// All settings and values, in order.
  std::vector<std::pair<std::string, std::string>> settings() const;

  const std::string& text(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  double number(std::string_view key, double low, double high) const;
  bool flag(std::string_view key) const;  // parses 0 or 1
  /// Index of the value among these names.
  std::size_t choice(std::string_view key, std::span<const std::string_view> names) const;
  /// `origin` is the source of the value for messages: "--rate" or "run.ini:7".
  void set(std::string_view key, std::string value, std::string origin = {});
  bool knows(std::string_view key) const;
  // true if the setting was not set
  bool is_default(std::string_view key) const { return origin(key).empty(); }

  const tasks::TaskKind& kind() const { return tasks::task_kind(text("task.name")); }
  tasks::OptionValues task_values() const;
  /// The training task, or the task of one of its distributions.
  std::unique_ptr<tasks::Task> task(std::string_view distribution = {}) const;
  /// A task of the run's kind whose samples have the model's positions.
  std::unique_ptr<tasks::Task> positioned(std::unique_ptr<tasks::Task> task) const;
  nn::DecoderConfig model(const tasks::Task& task) const;
  nn::MixerOptions mixer_options() const;  // options of all mixers
  /// Sets the settings with which model() returns this configuration, for a task with its
  /// vocabulary and outputs.
  void set_model(const nn::DecoderConfig& model);
  nn::Schedule schedule() const;
  nn::AdamOptions adam() const;
  nn::Storage storage() const;  // of the model during training
  BackendOptions backend_options() const;
  std::uint64_t most_file_bytes() const;  // maximum bytes of a checkpoint's file; 0: no limit
  BatchPlan batch_plan() const;           // of each batch of a step
  /// The trained distribution of the task, and its batches.
  std::shared_ptr<const tasks::Task> learned() const;
  nn::BatchSource batches(std::shared_ptr<const tasks::Task> learned) const;
  std::int64_t parts() const;   // parts of a step
  nn::Sharing sharing() const;  // among ranks
  std::uint64_t seed() const;
  /// Reads every setting once, so that an invalid one is reported with its origin before anything
  /// is written. Throws UsageError if it came from a flag.
  void check() const;

 private:
  template <class E>
  E named(std::string_view key) const {
    return static_cast<E>(choice(key, nn::names_of<E>));
  }
  tasks::PositionIds position_ids() const;
  std::int64_t longest_for(const tasks::Task& task) const;  // maximum positions
  struct Setting {
    std::string key, value, otherwise, origin = {};  // otherwise: default value
  };
  const std::string& origin(std::string_view key) const;  // empty: default value
  void read_all() const;                                  // throws an Error for an invalid setting
  std::string wrong() const;  // message of that Error; empty: all settings are valid
  friend std::vector<Option> config_options(std::initializer_list<std::string_view> shown);

  std::vector<Setting> settings_;
};

/// The flags of the settings: --width for model.width, --task for task.name, --task.p for task.p.
/// The help of one screen shows --task and those of `shown`, by default the common ones of a
/// training.
std::vector<Option> config_options(std::initializer_list<std::string_view> shown = {});

}  // namespace longhand::app
