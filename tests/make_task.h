#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tasks/task.h"

namespace longhand {

using TaskOptions = std::map<std::string, std::string>;

/// A task's default options with these in their place.
inline tasks::OptionValues option_values(const tasks::TaskKind& kind, const TaskOptions& options) {
  tasks::OptionValues values = kind.defaults();
  for (const auto& [name, value] : options) values.set(name, value);
  return values;
}

inline std::unique_ptr<tasks::Task> make_task(const tasks::TaskKind& kind,
                                              const TaskOptions& options,
                                              std::string_view distribution = {}) {
  return kind.make(option_values(kind, options), distribution);
}

}  // namespace longhand
