#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/rng.h"
#include "tasks/task.h"
#include "tests/refusal.h"

namespace longhand {

using TaskOptions = std::map<std::string, std::string>;

/// The default options of a task, where `options` replaces some values.
inline tasks::OptionValues option_values(const tasks::TaskKind& kind, const auto& options) {
  tasks::OptionValues values = kind.defaults();
  for (const auto& [name, value] : options) values.set(name, value);
  return values;
}

template <class Options = TaskOptions>
std::unique_ptr<tasks::Task> make_task(const tasks::TaskKind& kind, const Options& options = {},
                                       std::string_view distribution = {}) {
  return kind.make(option_values(kind, options), distribution);
}
template <class Options = TaskOptions>
std::unique_ptr<tasks::Task> make_task(std::string_view kind, const Options& options = {},
                                       std::string_view distribution = {}) {
  return make_task(tasks::task_kind(kind), options, distribution);
}

/// Makes tasks of one kind, such as `flip_flop`.
struct TaskMaker {
  tasks::TaskKind (*kind)();

  std::unique_ptr<tasks::Task> operator()(const TaskOptions& options = {},
                                          std::string_view distribution = {}) const {
    return make_task(kind(), options, distribution);
  }
  /// Returns the error message for invalid options, or "accepted" if the options are valid.
  std::string refusal(const TaskOptions& options, std::string_view distribution = {}) const {
    return longhand::refusal([&] { (*this)(options, distribution); });
  }
};

inline tasks::Sample draw(const tasks::Task& task, std::uint32_t index, int head = 0) {
  Rng rng(5, Purpose::test, 0, index);
  return task.sample(rng, head);
}

}  // namespace longhand
