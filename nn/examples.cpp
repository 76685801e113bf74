#include "nn/examples.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/random_order.h"

namespace longhand::nn {
namespace {

void check(const Examples& examples) {
  LONGHAND_CHECK(examples.targets.empty() || std::ssize(examples.targets) == examples.count(),
                 "examples: expected ", examples.count(), " targets, got ",
                 examples.targets.size());
  LONGHAND_CHECK(!examples.values || examples.values->count() == examples.count(),
                 "examples: values: expected ", examples.count(),
                 " rows, one for each example, got the shape ",
                 examples.values ? examples.values->shape() : Shape());
}

void require_some(const Examples& examples) {
  LONGHAND_CHECK(examples.count() > 0, "examples: expected at least one example, got none");
}

}  // namespace

Batch Examples::batch(std::span<const std::int64_t> rows) const {
  check(*this);
  Batch batch{.features = {features.shape().with_front(std::ssize(rows))}};
  if (values) batch.values.shape = values->shape().with_front(std::ssize(rows));
  for (const std::int64_t row : rows) {
    features.append_row(row, batch.features.values);
    if (!targets.empty()) batch.targets.push_back(targets[static_cast<std::size_t>(row)]);
    if (values) values->append_row(row, batch.values.values);
  }
  if (scale != 1) {
    for (double& value : batch.features.values) value *= scale;
  }
  return batch;
}

Batch Examples::batch(std::int64_t first, std::int64_t count) const {
  LONGHAND_CHECK(first >= 0 && count >= 0 && first <= this->count() - count,
                 "examples: expected a range within the ", this->count(), " examples, got ", count,
                 " examples from index ", first);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return batch(rows);
}

std::pair<Examples, Examples> Examples::split(double share, std::uint64_t seed) const {
  check(*this);
  require_some(*this);
  LONGHAND_CHECK(share >= 0 && share <= 1, "examples: split: expected a share from 0 to 1, got ",
                 share);
  const auto part = [&](std::int64_t first, std::int64_t end) {
    const RandomOrder order(static_cast<std::uint64_t>(count()), seed, Purpose::split, 0);
    std::vector<std::int64_t> rows;
    Examples made{.features = {}, .scale = scale};
    for (std::int64_t place = first; place < end; ++place) {
      rows.push_back(static_cast<std::int64_t>(order[static_cast<std::uint64_t>(place)]));
      if (!targets.empty()) made.targets.push_back(targets[static_cast<std::size_t>(rows.back())]);
    }
    made.features = features.select(rows);
    if (values) made.values = values->select(rows);
    return made;
  };
  const auto first = static_cast<std::int64_t>(std::floor(share * static_cast<double>(count())));
  return {part(0, first), part(first, count())};
}

BatchSource shuffled_batches(Examples examples, std::int64_t size, std::uint64_t seed,
                             std::int64_t batches) {
  check(examples);
  require_some(examples);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  LONGHAND_CHECK(size > 0 && size <= most && batches > 0 && batches <= most,
                 "examples: expected a batch size and batches per step from 1 to ", most, ", got ",
                 size, " and ", batches);
  return [examples = std::make_shared<const Examples>(std::move(examples)), size, seed, batches](
             std::int64_t step, std::int64_t place) {
    LONGHAND_CHECK(step >= 1 && place >= 0 && place < batches,
                   "examples: expected a step of at least 1 and a batch index from 0 to ",
                   batches - 1, ", because a step has ", batches, " batches, got step ", step,
                   " and batch index ", place);
    const auto count = static_cast<std::uint64_t>(examples->count());
    std::vector<std::int64_t> rows;
    const auto each = static_cast<std::uint64_t>(size);
    auto at = (static_cast<std::uint64_t>(step - 1) * static_cast<std::uint64_t>(batches) +
               static_cast<std::uint64_t>(place)) *
              each;
    while (std::ssize(rows) < size) {
      const RandomOrder order(count, seed, Purpose::data, at / count);
      for (; std::ssize(rows) < size; ++at) {
        rows.push_back(static_cast<std::int64_t>(order[at % count]));
        if ((at + 1) % count == 0) {
          ++at;
          break;
        }
      }
    }
    return examples->batch(rows);
  };
}

}  // namespace longhand::nn
