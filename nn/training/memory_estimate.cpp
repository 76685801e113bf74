#include "nn/training/memory_estimate.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "autograd/tape.h"
#include "core/accounting_backend.h"
#include "nn/ranks/communicator.h"

namespace longhand::nn {

namespace {

/// A batch that contains everything in `batch` twice.
Batch twice(const Batch& batch) {
  Batch all = batch;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(all.tokens, batch.tokens);
  append(all.lengths, batch.lengths);
  append(all.positions, batch.positions);
  append(all.targets, batch.targets);
  append(all.weights, batch.weights);
  for (auto [to, from] :
       {std::pair{&all.features, &batch.features}, std::pair{&all.values, &batch.values}}) {
    append(to->values, from->values);
    to->shape = from->shape.with_front(2 * from->shape.front());
  }
  for (auto& [name, to] : all.named_features) {
    append(to.values, batch.named_features.at(name).values);
    to.shape = to.shape.with_front(2 * to.shape.front());
  }
  for (auto& [name, to] : all.named_tokens) {
    append(to.tokens, batch.named_tokens.at(name).tokens);
    append(to.lengths, batch.named_tokens.at(name).lengths);
  }
  return all;
}

/// Peak of used memory in bytes, up to the start of backward and over the whole step.
struct Peaks {
  double forward = 0, step = 0;
};

/// Measures the peaks of one step. Adds the bytes of all gradients to `gradients`.
Peaks peaks_of(Model& model, Optimizer& optimizer, const Batch& batch, double& gradients) {
  Backend& backend = model.parameters().backend();
  const DType type = model.parameters().type();
  backend.memory().reset_peak();
  const PlacedBatch placed = place(backend, batch, type);
  model.prepare(placed.input.longest);
  Tape tape;
  Loss loss;
  {
    const Recording recording(tape);
    loss = model.loss(placed);
  }
  Peaks peaks{.forward = static_cast<double>(backend.memory().use().peak)};
  tape.backward(loss.value, Tensor::zeros(backend, {1}, type));
  for (const Parameter& p : model.parameters().all()) {
    if (const Tensor gradient = p.var().grad()) {
      gradients += static_cast<double>(CachingAllocator::class_size(gradient.bytes()));
    }
  }
  optimizer.prepare(0, 1);
  optimizer.step(loss.value.value());
  peaks.step = static_cast<double>(backend.memory().use().peak);
  return peaks;
}

/// A transport that is not connected to the other ranks.
class Unreachable final : public Transport {
 public:
  Unreachable(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void exchange(int, std::span<const std::byte>, std::span<std::byte>) override {
    throw RankLost("there is no other rank");
  }

 private:
  int rank_, size_;
};

/// Bytes of the moments on the rank that stores most, if `count` ranks share them.
double shared_moments(const Model& model, const OptimizerOf& optimizer_of, std::int64_t count) {
  const CachingAllocator& memory = model.parameters().backend().memory();
  const auto live = [&] { return static_cast<double>(memory.use().live); };
  double most = 0;
  for (int rank = 0; rank < count; ++rank) {
    const double before = live();
    Communicator ranks(std::make_unique<Unreachable>(rank, static_cast<int>(count)));
    const auto optimizer = optimizer_of(model, &ranks);
    most = std::max(most, live() - before);
  }
  return most;
}

/// Bytes of the packed panels of all matrices, in two orientations each. A number takes 2 bytes
/// with Math::bf16 and 4 bytes otherwise.
double panels_of(const Parameters& parameters, Math math) {
  double bytes = 0;
  for (const Parameter& p : parameters.all()) {
    if (p.shape().rank() != 2 || p.blocks()) continue;
    bytes += static_cast<double>(2 * p.shape().size()) * (math == Math::bf16 ? 2 : 4);
  }
  return std::min(bytes, static_cast<double>(SteadyValues::most_kept_bytes));
}

}  // namespace

MemoryEstimate estimate_training(const std::function<std::unique_ptr<Model>(Backend&)>& make_model,
                                 const BackendOptions& options, const Batch& batch, double times,
                                 const OptimizerOf& optimizer_of, const StepSpread& spread) {
  const OptimizerOf make =
      optimizer_of ? optimizer_of : [](const Model& model, Communicator* ranks) {
        return make_optimizer(model.parameters(), AdamOptions(), {}, ranks);
      };
  const auto backend = make_accounting_backend(options);
  const auto live = [&] { return static_cast<double>(backend->memory().use().live); };
  const auto model = make_model(*backend);
  MemoryEstimate need{.parameters = live()};
  const auto optimizer = make(*model, nullptr);
  const double lasting = live();
  need.moments = lasting - need.parameters;

  double set = 0;  // bytes of a set of gradients, which has one gradient per parameter
  Peaks peaks = peaks_of(*model, *optimizer, batch, set);
  if (times > 1) {
    double again = 0;
    const Peaks more = peaks_of(*model, *optimizer, twice(batch), again);
    peaks.forward += (times - 1) * (more.forward - peaks.forward);
    peaks.step += (times - 1) * (more.step - peaks.step);
  }
  // While the last part adds its gradients, the tree contains one set of gradients per level. With
  // Sharing::gradients, the set of the last part consists only of the rank's own gradients and
  // those in transit.
  const std::int64_t parts = spread.parts / spread.ranks;
  const int levels = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(parts))) - 1;
  const double below = set * levels;
  double last = set;
  if (spread.ranks > 1 && spread.sharing == Sharing::gradients) {
    const double on_the_way =
        static_cast<double>((GradientExchange::most_under_way + 1) * spread.bucket_bytes);
    last = std::min(set, set / static_cast<double>(spread.ranks) + on_the_way);
  }
  const double peak = std::max(peaks.forward, peaks.step - set + last);
  need.gradients = below + last;
  need.activations = std::max(0.0, peak - lasting - last);
  if (spread.ranks > 1 && spread.sharing != Sharing::nothing) {
    need.moments = shared_moments(*model, make, spread.ranks);
  }
  if (spread.keeps_panels && parts * spread.accumulation > 1) {
    need.panels = panels_of(model->parameters(), options.math);
  }
  return need;
}

}  // namespace longhand::nn
