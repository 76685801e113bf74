#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::tasks {

/// An option of a task. Users set it by a flag `--task.NAME VALUE` or a line in a configuration
/// file.
struct TaskOption {
  std::string name;
  std::string default_value;
  std::string help;
  std::string flag = {};  // a second name of the flag, such as `tokenizer`; empty: none
};

/// The values of a task's options, which are initially the defaults. Values are stored as text. The
/// arguments of integer(), number() and choice() state which values are valid. For any other value,
/// these functions throw a one-line Error that names the task and the option.
class OptionValues {
 public:
  OptionValues(std::string task, std::vector<TaskOption> options);

  void set(std::string_view name, std::string value);

  const std::string& text(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) const;
  double number(std::string_view name, double least, double most) const;
  /// Index of the value of an option among `choices`.
  std::size_t choice(std::string_view name, std::initializer_list<std::string_view> choices) const;

  const std::string& task() const { return task_; }
  std::span<const TaskOption> options() const { return options_; }

 private:
  std::size_t index_of(std::string_view name) const;

  std::string task_;
  std::vector<TaskOption> options_;
  std::vector<std::string> values_;  // value i belongs to option i of options_
};

}  // namespace longhand::tasks
