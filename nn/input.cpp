#include "nn/input.h"

#include <algorithm>

#include "core/error.h"

namespace longhand::nn {
namespace {

/// Returns the index of each token within its sequence. Sequence s has totals[s] tokens. The result
/// contains only the last lengths[s] of them; the other tokens are in a cache.
std::vector<std::int32_t> places_of(std::span<const std::int32_t> lengths,
                                    std::span<const std::int32_t> totals, std::size_t tokens) {
  std::vector<std::int32_t> places;
  places.reserve(tokens);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    for (std::int32_t i = totals[s] - lengths[s]; i < totals[s]; ++i) places.push_back(i);
  }
  LONGHAND_CHECK(places.size() == tokens, "input: expected lengths that add up to ", tokens,
                 " tokens, got ", places.size());
  return places;
}

std::int64_t largest(std::span<const std::int32_t> totals) {
  return totals.empty() ? 0 : *std::ranges::max_element(totals);
}

/// Returns the contents of Input::reference: ReferencePair::row and ReferencePair::position of each
/// pair. `places` contains the index of each row's token within its sequence. It is used to check
/// that no token should attend to a later token.
std::vector<std::int32_t> in_rows(std::span<const ReferencePair> reference,
                                  std::span<const std::int32_t> places) {
  std::vector<std::int32_t> numbers;
  std::int32_t before = 0;
  for (const ReferencePair& pair : reference) {
    LONGHAND_CHECK(
        pair.row >= before && pair.row < std::ssize(places),
        "input: reference: expected (row, position) pairs sorted by row, with rows below ",
        places.size(), ", got row ", pair.row, " after row ", before);
    before = pair.row;
    const std::int32_t own = places[static_cast<std::size_t>(pair.row)];
    LONGHAND_CHECK(pair.position >= 0 && pair.position <= own,
                   "input: expected a reference to a token at or before index ", own,
                   ", got index ", pair.position);
    numbers.insert(numbers.end(), {pair.row, pair.position});
  }
  return numbers;
}

/// Sets the position ids to `given` or, if `given` is empty, to `places`. `places` contains each
/// token's index within its sequence. `longest` is the length of the longest sequence.
void give_positions(Input& input, std::span<const std::int32_t> given,
                    std::span<const std::int32_t> places, std::int64_t longest) {
  input.gives_positions = !given.empty();
  input.longest = longest;
  if (given.empty()) {
    input.positions.assign(places);
    return;
  }
  const auto [least, most] = std::ranges::minmax(given);
  LONGHAND_CHECK(given.size() == places.size(), "input: expected ", places.size(),
                 " positions, one for each token, got ", given.size());
  LONGHAND_CHECK(least >= 0, "input: expected positions of at least 0, got ", least);
  input.positions.assign(given);
  input.longest = std::int64_t{most} + 1;
}

Shape shape_of(std::span<const ReferencePair> reference) { return {std::ssize(reference), 2}; }

/// Overwrites an input with the tokens of a batch. The last `filling` tokens are padding.
void assign_padded(Input& input, std::span<const std::int32_t> tokens,
                   std::span<const std::int32_t> lengths, std::span<const std::int32_t> positions,
                   std::int64_t filling, std::span<const ReferencePair> reference = {}) {
  std::vector<std::int32_t> places = places_of(lengths, lengths, tokens.size());
  std::fill(places.end() - filling, places.end(), 0);
  input.ids.assign(tokens);
  give_positions(input, positions, places, largest(lengths.first(lengths.size() - (filling > 0))));
  input.segments.assign(lengths);
  if (input.reference) input.reference.assign(in_rows(reference, places));
}

/// Returns the entry `name` of a map whose values are Tensors or Inputs. Throws an Error if the map
/// has no such entry. `kind` describes the values in the error message.
template <class Inputs>
auto& named(Inputs& inputs, std::string_view name, std::string_view kind) {
  std::string names;
  for (auto& [key, value] : inputs) {
    if (key == name) return value;
    names += (names.empty() ? "" : ", ") + key;
  }
  fail("batch: no input of ", kind, " has the name ", name,
       "; existing names: ", names.empty() ? "none" : names);
}

}  // namespace

Input make_input(Backend& backend, std::span<const std::int32_t> tokens,
                 std::span<const std::int32_t> lengths, std::span<const std::int32_t> totals,
                 std::span<const ReferencePair> reference,
                 std::span<const std::int32_t> given_positions) {
  const auto integers = [&](const Shape& shape) { return Tensor(backend, shape, DType::i32); };
  const Shape shape{std::ssize(tokens)};
  Input input{integers(shape), integers(shape), Segments(backend, lengths)};
  if (!reference.empty()) input.reference = integers(shape_of(reference));
  input.assign(tokens, lengths, totals, reference, given_positions);
  return input;
}

void Input::assign(std::span<const std::int32_t> tokens, std::span<const std::int32_t> lengths,
                   std::span<const std::int32_t> totals, std::span<const ReferencePair> pairs,
                   std::span<const std::int32_t> given_positions) {
  if (totals.empty()) totals = lengths;
  LONGHAND_CHECK(totals.size() == lengths.size(), "input: expected ", lengths.size(),
                 " total lengths, one for each sequence, got ", totals.size());
  const auto places = places_of(lengths, totals, tokens.size());
  ids.assign(tokens);
  give_positions(*this, given_positions, places, largest(totals));
  if (!std::ranges::equal(lengths, segments.lengths())) segments.assign(lengths);
  LONGHAND_CHECK(std::ssize(pairs) == (reference ? reference.rows() : 0),
                 "input: the number of reference pairs cannot change: expected ",
                 reference ? reference.rows() : 0, ", got ", pairs.size());
  if (reference) reference.assign(in_rows(pairs, places));
}

Input make_input(Backend& backend, const Batch& batch) {
  return make_input(backend, batch.tokens, batch.lengths, {}, batch.reference, batch.positions);
}

Input make_input(Backend& backend, std::span<const std::int32_t> tokens) {
  const auto length = static_cast<std::int32_t>(tokens.size());
  return make_input(backend, tokens, {&length, 1});
}

void PlacedBatch::assign(const Batch& batch) {
  check(batch);
  if (input.ids) {
    assign_padded(input, batch.tokens, batch.lengths, batch.positions, batch.filling,
                  batch.reference);
  }
  if (features) features.assign(batch.features.values);
  if (targets) targets.assign(batch.targets);
  if (values) values.assign(batch.values.values);
  if (weights) weights.assign(std::vector<double>(batch.weights.begin(), batch.weights.end()));
  if (counted.rows) assign_counted(batch);
  LONGHAND_CHECK(batch.named_features.size() == named_features.size() &&
                     batch.named_tokens.size() == named_tokens.size(),
                 "batch: expected the same named inputs as in the first batch, got other names");
  for (const auto& [name, more] : batch.named_features) {
    named(named_features, name, "floats").assign(more.values);
  }
  for (const auto& [name, more] : batch.named_tokens) {
    assign_padded(named(named_tokens, name, "tokens"), more.tokens, more.lengths, {}, more.filling);
  }
}

const Tensor& PlacedBatch::features_of(std::string_view name) const {
  const Tensor& input = named(named_features, name, "floats");
  LONGHAND_CHECK(input.shape().front() > 0, "batch: ", name,
                 ": expected at least one row of floats, got ", input.shape());
  return input;
}

const Input& PlacedBatch::tokens_of(std::string_view name) const {
  const Input& input = named(named_tokens, name, "tokens");
  LONGHAND_CHECK(input.segments.count() > 0, "batch: ", name,
                 ": expected at least one sequence of tokens, got none");
  return input;
}

void PlacedBatch::assign_counted(const Batch& batch) {
  std::vector<std::int32_t> rows = batch.counted_rows(), wanted;
  std::vector<double> weight;
  for (std::int32_t& row : rows) {
    for (std::int64_t g = 0; g < batch.groups; ++g) {
      const auto at = static_cast<std::size_t>(row * batch.groups + g);
      wanted.push_back(row < 0 ? -1 : batch.targets[at]);
      if (counted.weights) weight.push_back(row < 0 ? 0 : static_cast<double>(batch.weights[at]));
    }
    row = std::max(row, 0);
  }
  counted.rows.assign(rows);
  counted.targets.assign(wanted);
  if (counted.weights) counted.weights.assign(weight);
}

PlacedBatch place(Backend& backend, const Batch& batch, DType master) {
  check(batch);
  const std::int64_t rows = batch.rows();
  PlacedBatch placed{.input = {}, .head = batch.head};
  if (!batch.tokens.empty()) {
    const auto integers = [&] { return Tensor(backend, {rows}, DType::i32); };
    placed.input = {integers(), integers(), Segments(backend, batch.lengths)};
    if (!batch.reference.empty()) {
      placed.input.reference = Tensor(backend, shape_of(batch.reference), DType::i32);
    }
  }
  const auto floats = [&](const Floats& all) { return Tensor(backend, all.shape, master); };
  if (!batch.features.values.empty()) placed.features = floats(batch.features);
  if (!batch.values.values.empty()) placed.values = floats(batch.values);
  if (!batch.targets.empty()) placed.targets = Tensor(backend, {rows, batch.groups}, DType::i32);
  if (!batch.weights.empty()) placed.weights = Tensor(backend, {rows, batch.groups}, master);
  if (const auto listed = std::ssize(batch.counted_rows()); listed > 0) {
    placed.counted.rows = Tensor(backend, {listed}, DType::i32);
    placed.counted.targets = Tensor(backend, {listed, batch.groups}, DType::i32);
    if (placed.weights) placed.counted.weights = Tensor(backend, {listed, batch.groups}, master);
  }
  for (const auto& [name, more] : batch.named_features) {
    placed.named_features.emplace(name, floats(more));
  }
  for (const auto& [name, more] : batch.named_tokens) {
    const Shape shape{std::ssize(more.tokens)};
    placed.named_tokens.emplace(name, Input{.ids = Tensor(backend, shape, DType::i32),
                                            .positions = Tensor(backend, shape, DType::i32),
                                            .segments = Segments(backend, more.lengths)});
  }
  placed.assign(batch);
  return placed;
}

}  // namespace longhand::nn
