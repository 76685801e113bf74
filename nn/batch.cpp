#include "nn/batch.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace longhand::nn {
namespace {

// Batch and TokenRows both have the members `tokens`, `lengths` and `filling`. The following
// templates accept either class and use only these members.

void append_tokens(auto& to, std::span<const std::int32_t> sequence) {
  to.lengths.push_back(static_cast<std::int32_t>(sequence.size()));
  to.tokens.insert(to.tokens.end(), sequence.begin(), sequence.end());
}

std::span<const std::int32_t> without_padding(const auto& rows) {
  return std::span(rows.lengths)
      .first(rows.lengths.size() - (rows.filling > 0 && !rows.lengths.empty() ? 1 : 0));
}

void check_tokens(std::string_view name, const auto& rows) {
  std::int64_t sum = 0;
  for (const std::int32_t length : rows.lengths) {
    LONGHAND_CHECK(length >= 0, "batch: ", name, ": expected lengths of at least 0, got ", length);
    sum += length;
  }
  LONGHAND_CHECK(sum == std::ssize(rows.tokens), "batch: ", name,
                 ": expected lengths that add up to ", rows.tokens.size(), " tokens, got ", sum);
  const std::int64_t last = rows.lengths.empty() ? 0 : rows.lengths.back();
  LONGHAND_CHECK(rows.filling == 0 || rows.filling == last, "batch: ", name, ": expected 0 or ",
                 last, " padding tokens (all tokens of the last sequence), got ", rows.filling);
}

void check_floats(std::string_view name, const Floats& floats) {
  LONGHAND_CHECK(floats.shape.rank() > 0, "batch: ", name,
                 ": expected at least one axis, got none");
  LONGHAND_CHECK(floats.shape.size() == std::ssize(floats.values), "batch: ", name, ": expected ",
                 floats.shape.size(), " values for the shape ", floats.shape, ", got ",
                 floats.values.size());
}

/// Throws an Error unless an array is empty or has `each` entries per row. `count` is the array's
/// number of entries, and `name` is its name in the error message.
void check_count(std::string_view name, std::int64_t count, std::int64_t rows, std::int64_t each) {
  LONGHAND_CHECK(count == 0 || (count % each == 0 && count / each == rows), "batch: ", name,
                 ": expected entries for ", rows, " rows (", each, " per row), got ", count,
                 " entries");
}

}  // namespace

void TokenRows::append(std::span<const std::int32_t> sequence) { append_tokens(*this, sequence); }

std::span<const std::int32_t> TokenRows::real_lengths() const { return without_padding(*this); }
std::span<const std::int32_t> Batch::real_lengths() const { return without_padding(*this); }

void Batch::append(std::span<const std::int32_t> sequence, std::span<const std::int32_t> wanted) {
  LONGHAND_CHECK(wanted.size() == sequence.size(), "batch: expected ", sequence.size(),
                 " targets, one for each token, got ", wanted.size());
  append_tokens(*this, sequence);
  targets.insert(targets.end(), wanted.begin(), wanted.end());
}

std::int64_t Batch::rows() const {
  if (!tokens.empty()) return std::ssize(tokens);
  if (!features.values.empty()) return features.shape.front();
  return targets.empty() ? values.shape.front()
                         : std::ssize(targets) / std::max<std::int64_t>(1, groups);
}

void check(const Batch& batch) {
  check_tokens("tokens", batch);
  check_floats("features", batch.features);
  check_floats("values", batch.values);
  LONGHAND_CHECK(batch.groups > 0,
                 "batch: groups (target classes per row): expected at least 1, got ", batch.groups);
  const std::int64_t rows = batch.rows();
  const auto check_rows = [&](std::string_view name, const Floats& floats) {
    LONGHAND_CHECK(floats.values.empty() || floats.shape.front() == rows, "batch: ", name,
                   ": expected ", rows, " rows, got ", floats.shape);
  };
  check_rows("features", batch.features);
  check_rows("values", batch.values);
  check_count("positions", std::ssize(batch.positions), std::ssize(batch.tokens), 1);
  check_count("targets", std::ssize(batch.targets), rows, batch.groups);
  check_count("weights", std::ssize(batch.weights), rows, batch.groups);
  for (const auto& [name, floats] : batch.named_features) check_floats(name, floats);
  for (const auto& [name, tokens] : batch.named_tokens) {
    check_tokens(name, tokens);
    LONGHAND_CHECK(batch.tokens.empty() || tokens.lengths.size() == batch.lengths.size(),
                   "batch: ", name, ": expected ", batch.lengths.size(),
                   " sequences, as in the batch's tokens, got ", tokens.lengths.size());
  }
  const bool is_named = !batch.named_features.empty() || !batch.named_tokens.empty();
  LONGHAND_CHECK(!is_named || rows > 0,
                 "batch: expected tokens, features, targets or values, which determine the number "
                 "of rows, got only named inputs");
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
  check(*this);
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
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    LONGHAND_CHECK(step >= 0 && part >= 0 && part <= most,
                   "batch: expected a step of at least 0 and a batch index from 0 to ", most,
                   ", got step ", step, " and batch index ", part);
    Rng rng(seed, Purpose::data, static_cast<std::uint64_t>(step),
            static_cast<std::uint32_t>(part));
    return draw(rng);
  };
}

}  // namespace longhand::nn
