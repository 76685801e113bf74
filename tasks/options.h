#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::tasks {

/// An option of a task: a flag `--task.NAME VALUE` and a line of a configuration file.
struct Option {
  std::string name;
  std::string otherwise;  // the default
  std::string meaning;
  std::string flag = {};  // in place of --task.NAME
};

/// The values of a task's options: the defaults until set. Values are text; who reads one says what
/// it must be, and what it is not is refused in one line naming the task and the option.
class OptionValues {
 public:
  OptionValues(std::string task, std::vector<Option> options);

  void set(std::string_view name, std::string value);

  const std::string& text(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) const;
  double number(std::string_view name, double least, double most) const;
  /// The place of the value among the choices.
  std::size_t choice(std::string_view name, std::initializer_list<std::string_view> choices) const;

  const std::string& task() const { return task_; }
  std::span<const Option> options() const { return options_; }

 private:
  std::size_t index_of(std::string_view name) const;

  std::string task_;
  std::vector<Option> options_;
  std::vector<std::string> values_;  // beside options_
};

}  // namespace longhand::tasks
