// Any bytes, read as a line of `longhand data check`; the first says of which task. The line is
// refused, or judged in one line by the task's rules; an answer that the task itself gives to the
// prompt is right.
#include <memory>
#include <optional>
#include <vector>

#include "tasks/answers.h"
#include "tasks/task.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

namespace {

std::vector<std::unique_ptr<tasks::Task>> all_tasks() {
  std::vector<std::unique_ptr<tasks::Task>> all;
  for (const tasks::TaskKind& kind : tasks::all_tasks()) all.push_back(kind.make(kind.defaults()));
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto all = all_tasks();
  if (size == 0) return 0;
  const tasks::Task& task = *all[data[0] % all.size()];
  const std::string_view line(reinterpret_cast<const char*>(data) + 1, size - 1);
  tasks::Answer pair;
  if (!done_or_refused([&] { pair = tasks::Answer::parse(line, source); })) return 0;
  for (int head = 0; head < task.heads(); ++head) {
    const auto verdict = task.check(pair.prompt, pair.answer, head);
    if (verdict) {
      require(*verdict == printable(*verdict), "a verdict is one line of printable text");
      require(verdict->size() < 1000, "a verdict is short");
    }
    std::string right;
    if (done_or_refused([&] { right = task.answer(pair.prompt, head); }, "")) {
      const auto wrong = task.check(pair.prompt, right, head);
      require(!wrong, "the answer that a task gives is right");
    }
  }
  return 0;
}
