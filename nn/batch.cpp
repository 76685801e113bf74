#include "nn/batch.h"

#include <utility>

#include "core/error.h"

namespace longhand::nn {

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
