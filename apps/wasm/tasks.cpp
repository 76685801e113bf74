#include "core/error.h"
#include "tasks/chains.h"
#include "tasks/copying.h"
#include "tasks/cycle_tracing.h"
#include "tasks/flip_flop.h"
#include "tasks/recall.h"
#include "tasks/sorting.h"
#include "tasks/task.h"

/// The tasks of the WebAssembly module. This file replaces tasks/all_tasks.cpp. The module cannot
/// read files, so named_task() accepts the name of a kind of task, but not the path of task files.
namespace longhand::tasks {
namespace {

/// All bytes, in ascending order.
std::string all_bytes() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

/// Texts of bytes that the reader types. The task has no samples, so its models cannot be trained.
class TypedText final : public Task {
 public:
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  Outputs outputs() const override { return {.classes = vocabulary_.size()}; }
  std::int64_t longest() const override { return 256; }
  Sample sample(Rng&, int) const override { fail("typed: expected a task with samples"); }
  void score(const Sample& sample, std::span<const std::int32_t> said, Tally&) const override {
    count_right(sample, said);
  }
  std::string_view main_metric() const override { return "loss"; }
  std::vector<ReferenceRow> reference(const Sample&) const override { return {}; }
  std::string answer(std::string_view, int) const override { return {}; }
  std::optional<std::string> check(std::string_view, std::string_view, int) const override {
    return std::nullopt;
  }

 private:
  WordVocabulary vocabulary_ = WordVocabulary::of_characters(all_bytes());
};

TaskKind typed_text() {
  return {.name = "typed",
          .summary = "texts that the reader types",
          .options = {},
          .distributions = {{"train", [](OptionValues&) {}}},
          .make_with = [](const OptionValues&) { return std::make_unique<TypedText>(); }};
}

}  // namespace

std::span<const TaskKind> all_tasks() {
  static const std::vector<TaskKind> kinds{flip_flop(), cycle_tracing(), chains(),    recall(),
                                           copying(),   sorting(),       typed_text()};
  return kinds;
}

NamedTask named_task(std::string_view word) { return {task_kind(word)}; }

}  // namespace longhand::tasks
