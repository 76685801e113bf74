#include "tasks/task.h"

#include <algorithm>

#include "core/error.h"
#include "core/nearest.h"
#include "core/quote.h"

namespace longhand::tasks {
namespace {

std::string names_of(const auto& items) {
  std::string names;
  for (const auto& item : items) names += (names.empty() ? "" : ", ") + item.name;
  return names;
}

}  // namespace

Sample Task::sample_at(std::uint64_t, double) const {
  fail("expected a task with a fixed list of samples, got a task that draws samples at random");
}

Sample Task::sample_of(std::string_view) const {
  fail(
      "expected a task that can parse the text of a sample, for example the task \"reversal\", got "
      "a task that cannot parse texts");
}

std::pair<std::string, std::string> Task::as_text(const Sample& sample) const {
  const auto tokens = std::span(sample.tokens);
  const std::size_t given =
      sample.asked.empty() ? tokens.size() : static_cast<std::size_t>(sample.asked.front()) + 1;
  std::string whole = vocabulary().decode(tokens);
  std::string prompt = vocabulary().decode(tokens.first(given));
  return {std::move(prompt), whole.substr(prompt.size())};
}

std::int64_t Task::count_right(const Sample& sample, std::span<const std::int32_t> said) {
  LONGHAND_CHECK(said.size() == sample.asked.size(), "score: expected ", sample.asked.size(),
                 " answers, got ", said.size());
  std::int64_t right = 0;
  for (std::size_t i = 0; i < said.size(); ++i) {
    right += said[i] == sample.targets[static_cast<std::size_t>(sample.asked[i])];
  }
  return right;
}

void Task::add_answer(const Sample& sample, std::span<const std::int32_t> said, Tally& tally) {
  const std::int64_t right = count_right(sample, said);
  const auto total = static_cast<std::int64_t>(said.size());
  tally.add_share("sequences", right == total, 1);
  tally.add_share("tokens", right, total);
}

std::vector<Distribution> TaskKind::distributions_of(const OptionValues& values) const {
  std::vector<Distribution> all = distributions;
  if (!further) return all;
  for (Distribution& more : further(values)) all.push_back(std::move(more));
  // If there is no other distribution, checkpoints are compared on the training distribution.
  if (all.size() == 1) all.front().compared = true;
  return all;
}

std::unique_ptr<Task> TaskKind::make(OptionValues values, std::string_view wanted) const {
  if (wanted.empty()) return make_with(values);
  const std::vector<Distribution> all = distributions_of(values);
  const auto changed = std::ranges::find(all, wanted, &Distribution::name);
  LONGHAND_CHECK(changed != all.end(), "task ", name, ": expected one of the distributions ",
                 names_of(all), ", got ", quote(wanted));
  try {
    changed->change(values);
    return make_with(values);
  } catch (const Error& error) {
    if (changed == all.begin()) throw;
    // Names the distribution, because the invalid value comes from the distribution and not from
    // the user.
    fail(error.what(), " (distribution ", wanted, ')');
  }
}

const TaskKind& task_kind(std::string_view name) {
  const auto place = std::ranges::find(all_tasks(), name, &TaskKind::name);
  if (place != all_tasks().end()) return *place;
  std::vector<std::string> known;
  for (const TaskKind& kind : all_tasks()) known.push_back(kind.name);
  fail("expected one of the tasks ", names_of(all_tasks()), ", or a folder of JSONL files, got ",
       quote(name), did_you_mean(name, known));
}

}  // namespace longhand::tasks
