#include "tasks/position_ids.h"

#include <algorithm>
#include <set>

#include "core/error.h"

namespace longhand::tasks {
namespace {

using Ids = std::vector<std::int32_t>;

/// Draws `count` distinct numbers below `range` by Floyd's algorithm, and returns them in ascending
/// order. All sets of numbers are equally likely.
Ids drawn_ascending(std::int64_t count, std::int64_t range, Rng& rng) {
  std::set<std::int32_t> chosen;
  for (std::int64_t last = range - count; last < range; ++last) {
    const auto number = static_cast<std::int32_t>(rng.below(static_cast<std::uint32_t>(last + 1)));
    if (!chosen.insert(number).second) chosen.insert(static_cast<std::int32_t>(last));
  }
  return {chosen.begin(), chosen.end()};
}

/// A task that has the samples of another task, with other position ids.
class PositionedTask final : public Task {
 public:
  PositionedTask(std::unique_ptr<Task> task, PositionIds ids, std::int64_t range)
      : task_(std::move(task)), ids_(ids), range_(range) {
    LONGHAND_CHECK(range_ >= 1 && range_ <= 1 << 24,
                   "position ids: expected a number of positions from 1 to ", 1 << 24, ", got ",
                   range_);
    const std::int32_t any = 0;
    const Task& inner = *task_;
    LONGHAND_CHECK(
        ids_ != PositionIds::coupled || !inner.couplings({&any, 1}).empty(),
        "position ids \"coupled\": expected one of the tasks addition, multiplication, reversal, "
        "increment and copying, without a tokenizer (--tokenizer)");
    LONGHAND_CHECK(ids_ != PositionIds::abacus || !inner.digit_places({&any, 1}).empty(),
                   "position ids \"abacus\": expected one of the tasks addition and "
                   "multiplication, which write numbers with the last digit first, without a "
                   "tokenizer (--tokenizer)");
  }

  const Vocabulary& vocabulary() const override { return task_->vocabulary(); }
  Outputs outputs() const override { return task_->outputs(); }
  int heads() const override { return task_->heads(); }
  std::string_view head_name(int head) const override { return task_->head_name(head); }
  std::int64_t longest() const override { return task_->longest(); }
  std::int64_t position_count() const override {
    return ids_ == PositionIds::random ? task_->longest() : task_->coupled_positions();
  }
  std::vector<std::int32_t> ends() const override { return task_->ends(); }
  Sample sample(Rng& rng, int head) const override {
    return positioned(task_->sample(rng, head), rng);
  }
  std::uint64_t count() const override { return task_->count(); }
  Sample sample_at(std::uint64_t number, double shift) const override {
    Sample sample = task_->sample_at(number, shift);
    Rng rng(static_cast<std::uint64_t>(shift * 0x1p53), Purpose::data, number);
    return positioned(std::move(sample), rng);
  }
  Sample sample_of(std::string_view text) const override {
    Sample sample = task_->sample_of(text);
    Rng rng(0, Purpose::data);
    return positioned(std::move(sample), rng);
  }
  std::vector<std::int32_t> positions(std::span<const std::int32_t> tokens, std::int64_t room,
                                      std::uint64_t seed) const override {
    if (ids_ != PositionIds::random) return started(tokens, 0);
    Rng rng(seed, Purpose::evaluation);
    require(room);
    Ids ids = drawn_ascending(room, range_, rng);
    ids.resize(tokens.size());
    return ids;
  }
  std::vector<std::int32_t> couplings(std::span<const std::int32_t> tokens) const override {
    return task_->couplings(tokens);
  }
  std::vector<std::int32_t> digit_places(std::span<const std::int32_t> tokens) const override {
    return task_->digit_places(tokens);
  }
  std::int64_t coupled_positions() const override { return task_->coupled_positions(); }
  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    task_->score(sample, said, tally);
  }
  std::string_view main_metric() const override { return task_->main_metric(); }
  std::int64_t target_bytes(const Sample& sample) const override {
    return task_->target_bytes(sample);
  }
  std::vector<ReferenceRow> reference(const Sample& sample) const override {
    return task_->reference(sample);
  }
  std::int64_t instruction_tokens() const override { return task_->instruction_tokens(); }
  std::pair<std::string, std::string> as_text(const Sample& sample) const override {
    return task_->as_text(sample);
  }
  std::string answer(std::string_view prompt, int head) const override {
    return task_->answer(prompt, head);
  }
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int head) const override {
    return task_->check(prompt, answer, head);
  }

 private:
  void require(std::int64_t positions) const {
    LONGHAND_CHECK(positions <= range_, "position ids: expected at most ", range_,
                   " positions in a sequence (--longest), got ", positions);
  }

  /// Position ids: the couplings (equal for tokens that belong together) or the digit places of the
  /// tokens, increased by `start`. Digit place 0 (no digit) remains 0.
  Ids started(std::span<const std::int32_t> tokens, std::int32_t start) const {
    const bool coupled = ids_ == PositionIds::coupled;
    Ids ids = coupled ? task_->couplings(tokens) : task_->digit_places(tokens);
    for (std::int32_t& id : ids) id += coupled || id > 0 ? start : 0;
    require(ids.empty() ? 0 : std::int64_t{std::ranges::max(ids)} + 1);
    return ids;
  }

  Sample positioned(Sample sample, Rng& rng) const {
    if (ids_ == PositionIds::random) {
      require(std::ssize(sample.tokens));
      sample.positions = drawn_ascending(std::ssize(sample.tokens), range_, rng);
      return sample;
    }
    const Ids ids = started(sample.tokens, 0);
    const std::int32_t most = ids.empty() ? 0 : std::ranges::max(ids);
    const auto starts = static_cast<std::uint32_t>(range_ - most);
    sample.positions = started(sample.tokens, static_cast<std::int32_t>(rng.below(starts)));
    return sample;
  }

  std::unique_ptr<Task> task_;
  PositionIds ids_;
  std::int64_t range_;
};

}  // namespace

std::unique_ptr<Task> with_position_ids(std::unique_ptr<Task> task, PositionIds ids,
                                        std::int64_t range) {
  if (ids == PositionIds::places) return task;
  return std::make_unique<PositionedTask>(std::move(task), ids, range);
}

}  // namespace longhand::tasks
