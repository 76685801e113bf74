#include "nn/batch.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"

namespace longhand::nn {

void TokenRows::append(std::span<const std::int32_t> sequence) {
  lengths.push_back(static_cast<std::int32_t>(sequence.size()));
  tokens.insert(tokens.end(), sequence.begin(), sequence.end());
}

void Batch::append(std::span<const std::int32_t> sequence, std::span<const std::int32_t> wanted) {
  LONGHAND_CHECK(wanted.size() == sequence.size(), "batch: expected ", sequence.size(),
                 " targets, one for each token, got ", wanted.size());
  lengths.push_back(static_cast<std::int32_t>(sequence.size()));
  tokens.insert(tokens.end(), sequence.begin(), sequence.end());
  targets.insert(targets.end(), wanted.begin(), wanted.end());
}

std::int64_t Batch::rows() const {
  return tokens.empty() ? features.shape.front() : std::ssize(tokens);
}

std::vector<std::int32_t> Batch::counted_rows() const {
  if (!lists_counted) return {};
  std::vector<std::int32_t> counted;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto row = static_cast<std::int32_t>(static_cast<std::int64_t>(i) / groups);
    if (targets[i] >= 0 && (counted.empty() || counted.back() != row)) counted.push_back(row);
  }
  const std::size_t step = std::max<std::size_t>(16, std::bit_floor(counted.size()) / 8);
  const std::size_t room = (counted.size() + step - 1) / step * step;
  if (counted.empty() || 2 * room > static_cast<std::size_t>(rows())) return {};
  counted.resize(room, -1);
  return counted;
}

double Batch::total_weight() const {
  if (!values.values.empty()) return static_cast<double>(values.values.size());
  if (targets.empty()) return static_cast<double>(rows());
  double sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] >= 0) sum += weights.empty() ? 1.0 : static_cast<double>(weights[i]);
  }
  return sum;
}

BatchSource drawn_batches(std::uint64_t seed, std::function<Batch(Rng&)> draw) {
  return [seed, draw = std::move(draw)](std::int64_t step, std::int64_t part) {
    Rng rng(seed, Purpose::data, static_cast<std::uint64_t>(step),
            static_cast<std::uint32_t>(part));
    return draw(rng);
  };
}

}  // namespace longhand::nn
