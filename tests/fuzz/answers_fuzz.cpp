// Fuzz target for `longhand data check`. The first line of the input may name a task; otherwise the
// first of all tasks is used. The other bytes are parsed as a record with a prompt and an answer.
// The record is refused, or the task's verdict on it is one line. The answer that the task itself
// gives to the prompt must be judged right.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "tasks/answers.h"
#include "tasks/task.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

namespace {

struct Named {
  std::string name;
  std::unique_ptr<tasks::Task> task;
};

std::vector<Named> all_tasks() {
  std::vector<Named> all;
  for (const tasks::TaskKind& kind : tasks::all_tasks()) {
    all.push_back({kind.name, kind.make(kind.defaults())});
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto all = all_tasks();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  const auto named = std::ranges::find(all, input.substr(0, end), &Named::name);
  const tasks::Task& task = *(named == all.end() ? all.front() : *named).task;
  const std::string_view line = input.substr(std::min(end + 1, input.size()));
  tasks::Answer pair;
  tasks::RecordMarks marks;
  done_or_refused([&] { tasks::Answer::parse(line, source, marks); });
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
