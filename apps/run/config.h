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
constexpr std::int64_t longest_training = std::int64_t{1} << 40;  // steps
constexpr std::int64_t random_positions = 2048;                   // as published (arXiv:2305.16843)

/// Everything a training run depends on: "section.key" to text. Defaults, then a config.ini, then
/// flags; what is written into the run folder is complete, so that it alone repeats the run.
///
///   [task]      name, and the task's own options
///   [model]     width, layers, heads, ...
///   [training]  steps, batch, rate, seed, ...
///   [compute]   backend, threads, math
class Config {
 public:
  /// The defaults, with those of the task.
  explicit Config(std::string_view task);

  /// Reads a config.ini; a section or key that is not known is an Error naming the line.
  static Config read(const std::filesystem::path& file);
  static Config read(const FileDescriptor& file, const std::string& source);
  static Config parse(std::string_view ini, const std::string& source);
  /// The flags of `train` over the defaults or over --config's file, checked.
  static Config from(const Arguments& arguments);
  /// The model and the computing of another run, and its task where it is this one; of another task
  /// its tokenizer and chat template; all else from the defaults.
  static Config from_run(const Config& run, std::string_view task);
  /// That with the task of the flags of `train`, or the run's, and the flags over it, checked.
  static Config from_run(const Config& run, const Arguments& arguments);
  void set_flags(const Arguments& arguments);  // those of them that were given, unchecked
  std::string ini() const;
  /// Every setting and its value, in order.
  std::vector<std::pair<std::string, std::string>> settings() const;

  const std::string& text(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  double number(std::string_view key, double low, double high) const;
  bool flag(std::string_view key) const;  // 0 or 1
  /// Which of these names it is.
  std::size_t choice(std::string_view key, std::span<const std::string_view> names) const;
  /// `origin` is who says so, for messages: "--rate" or "run.ini:7".
  void set(std::string_view key, std::string value, std::string origin = {});
  bool knows(std::string_view key) const;
  bool is_default(std::string_view key) const { return origin(key).empty(); }  // nobody set it

  const tasks::TaskKind& kind() const { return tasks::task_kind(text("task.name")); }
  tasks::OptionValues task_values() const;
  /// The training task, or the task changed to one of its distributions.
  std::unique_ptr<tasks::Task> task(std::string_view distribution = {}) const;
  /// A task of the run's kind with the model's positions in its samples.
  std::unique_ptr<tasks::Task> positioned(std::unique_ptr<tasks::Task> task) const;
  nn::DecoderConfig model(const tasks::Task& task) const;
  nn::MixerOptions mixer_options() const;  // what they say of all mixers
  /// Settings with which model() gives this one, under a task of its vocabulary and outputs.
  void set_model(const nn::DecoderConfig& model);
  nn::Schedule schedule() const;
  nn::AdamOptions adam() const;
  nn::Storage storage() const;  // of the model in training
  BackendOptions backend_options() const;
  std::uint64_t most_file_bytes() const;  // of checkpoints; 0: no limit
  BatchPlan batch_plan() const;           // of each of a step's batches
  /// What a training learns from: the task's distribution that is learned, cut into batches.
  std::shared_ptr<const tasks::Task> learned() const;
  nn::BatchSource batches(std::shared_ptr<const tasks::Task> learned) const;
  std::int64_t parts() const;   // of a step
  nn::Sharing sharing() const;  // among ranks
  std::uint64_t seed() const;
  /// Reads every setting once: what cannot be used is told, with who set it, before anything is
  /// written. Wrong usage if that was a flag.
  void check() const;

 private:
  template <class E>
  E named(std::string_view key) const {
    return static_cast<E>(choice(key, nn::names_of<E>));
  }
  tasks::PositionIds position_ids() const;
  std::int64_t longest_for(const tasks::Task& task) const;  // positions
  struct Setting {
    std::string key, value, otherwise, origin = {};  // otherwise: the default
  };
  const std::string& origin(std::string_view key) const;  // empty: the default
  void read_all() const;                                  // an Error if a setting cannot be used
  std::string wrong() const;                              // its message; empty: all can be used
  friend std::vector<Option> config_options(std::initializer_list<std::string_view> shown);

  std::vector<Setting> settings_;
};

/// The flags that set them: --width for model.width, --task for task.name, --task.p for task.p.
/// Help of one screen has --task and those of `shown`; with none, what a training often wants.
std::vector<Option> config_options(std::initializer_list<std::string_view> shown = {});

}  // namespace longhand::app
