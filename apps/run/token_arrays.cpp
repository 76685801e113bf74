#include "apps/run/token_arrays.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/quote.h"
#include "nn/training/step_trace.h"

namespace longhand::app {
namespace {

/// Reads the arrays of one batch from a file.
class BatchArrays {
 public:
  BatchArrays(const SafetensorsFile& file, std::string prefix)
      : file_(file), prefix_(std::move(prefix)) {}

  bool has(const std::string& name) const { return file_.find(prefix_ + name) != nullptr; }
  std::vector<std::int32_t> integers(const std::string& name) const {
    return has(name) ? file_.to_i32(prefix_ + name) : std::vector<std::int32_t>();
  }
  const Shape& shape(const std::string& name) const { return file_.find(prefix_ + name)->shape; }
  std::vector<float> floats(const std::string& name) const {
    if (!has(name)) return {};
    const auto host = make_reference_backend();
    const Tensor x = load_tensor(*host, file_, prefix_ + name);
    if (!is_float(x.dtype())) wrong(name, "expected F32 or F64");
    const std::vector<double> values = x.to_doubles();
    return {values.begin(), values.end()};
  }
  template <class... Parts>
  [[noreturn]] void wrong(const std::string& name, const Parts&... parts) const {
    fail(file_.name(), ": array ", quote(prefix_ + name), ": ", parts...);
  }

  nn::Batch batch(std::int32_t vocabulary) const {
    nn::Batch batch{.tokens = integers("tokens"), .lengths = integers("lengths")};
    const Shape& given = shape("tokens");
    if (batch.tokens.empty()) wrong("tokens", "expected at least one token, got none");
    if (given.rank() > 2) wrong("tokens", "expected shape [n] or [sequences, n], got ", given);
    for (const std::int32_t token : batch.tokens) {
      if (token < 0 || token >= vocabulary) {
        wrong("tokens", "expected tokens from 0 to ", vocabulary - 1, ", got ", token);
      }
    }
    const auto count = std::ssize(batch.tokens);
    if (!has("lengths")) {
      const std::int64_t each = given.rank() == 2 ? given[1] : count;
      batch.lengths.assign(static_cast<std::size_t>(count / each), static_cast<std::int32_t>(each));
    }
    const auto bad = std::ranges::find_if(batch.lengths, [](std::int32_t n) { return n < 1; });
    if (bad != batch.lengths.end()) wrong("lengths", "expected lengths above 0, got ", *bad);
    const auto all = std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::int64_t{0});
    if (all != count)
      wrong("lengths", "expected lengths that add up to the ", count, " tokens, got ", all);
    batch.targets = integers("targets");
    if (!batch.targets.empty()) {
      if (std::ssize(batch.targets) % count != 0) {
        wrong("targets", "expected shape [", count, ", choices], got ", shape("targets"));
      }
      batch.groups = std::ssize(batch.targets) / count;
    }
    batch.weights = floats("weights");
    if (!batch.weights.empty() && batch.weights.size() != batch.targets.size()) {
      wrong("weights", "expected one weight for each of ", batch.targets.size(), " targets, got ",
            batch.weights.size(), " weights");
    }
    for (const float weight : batch.weights) {
      if (!(weight >= 0 && weight < 1e30f))
        wrong("weights", "expected weights of 0 or more, got ", weight);
    }
    batch.positions = integers("positions");
    if (!batch.positions.empty() && std::ssize(batch.positions) != count) {
      wrong("positions", "expected ", count, " positions, one for each token, got ",
            batch.positions.size());
    }
    for (const std::int32_t position : batch.positions) {
      if (position < 0) wrong("positions", "expected positions of 0 or more, got ", position);
    }
    if (const auto head = integers("head"); !head.empty()) batch.head = head.front();
    return batch;
  }

 private:
  const SafetensorsFile& file_;
  std::string prefix_;
};

}  // namespace

std::vector<nn::Batch> read_token_batches(const std::filesystem::path& file,
                                          std::int32_t vocabulary) {
  const ArrayFile opened(file, "tokens");
  std::vector<nn::Batch> batches;
  const BatchArrays whole(opened.arrays(), "");
  if (whole.has("tokens")) return {whole.batch(vocabulary)};
  for (std::int64_t place = 0;; ++place) {
    const BatchArrays one(opened.arrays(), nn::batch_prefix(place));
    if (!one.has("tokens")) break;
    batches.push_back(one.batch(vocabulary));
  }
  LONGHAND_CHECK(!batches.empty(), file.string(),
                 ": expected an array \"tokens\" or \"batches.0.tokens\", got neither");
  return batches;
}

std::vector<std::vector<std::int32_t>> read_token_sequences(const std::filesystem::path& file,
                                                            std::int32_t vocabulary) {
  std::vector<std::vector<std::int32_t>> sequences;
  for (const nn::Batch& batch : read_token_batches(file, vocabulary)) {
    LONGHAND_CHECK(batch.targets.empty() && batch.positions.empty(), file.string(),
                   ": expected no arrays except \"tokens\" and \"lengths\", got the array ",
                   quote(batch.targets.empty() ? "positions" : "targets"));
    auto token = batch.tokens.begin();
    for (const std::int32_t length : batch.lengths) {
      sequences.emplace_back(token, token + length);
      token += length;
    }
  }
  return sequences;
}

void add_lists(std::vector<NamedTensor>& arrays, Backend& host, const std::string& name,
               const std::string& lengths, std::span<const std::vector<std::int32_t>> lists) {
  std::vector<std::int32_t> all, sizes;
  for (const std::vector<std::int32_t>& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
    sizes.push_back(static_cast<std::int32_t>(list.size()));
  }
  arrays.push_back({name, Tensor::from(host, {std::ssize(all)}, all)});
  arrays.push_back({lengths, Tensor::from(host, {std::ssize(sizes)}, sizes)});
}

}  // namespace longhand::app
