#include "nn/training/step.h"

#include <optional>
#include <utility>

#include "autograd/tape.h"
#include "core/contract/elementwise.h"

namespace longhand::nn {
namespace {

void put(const Tensor& number, const Tensor& numbers, std::int64_t at) {
  numbers.backend()(Copy{.x = number, .y = numbers.slice(at, 1)});
}

}  // namespace

PlacedStep::PlacedStep(Model& model, const Step& step) : cut(step.cut), places(step.places) {
  Backend& backend = model.parameters().backend();
  const DType type = model.parameters().type();
  const auto count = std::ssize(step.batches);
  shares = Tensor(backend, {count}, type);
  numbers = Tensor::zeros(backend, {2 * count + 1}, type);
  for (const Batch& batch : step.batches) batches.push_back(place(backend, batch, type));
  prepare(model, step);
}

void PlacedStep::assign(Model& model, const Step& step) {
  for (std::size_t i = 0; i < batches.size(); ++i) batches[i].assign(step.batches[i]);
  prepare(model, step);
}

void PlacedStep::prepare(Model& model, const Step& step) const {
  for (const PlacedBatch& batch : batches) model.prepare(batch.input.longest);
  model.parameters().noise()->prepare(step.report.step);
  shares.assign(step.shares);
}

void PlacedStep::put_norm(const Tensor& norm) const { put(norm, numbers, numbers.size() - 1); }

void PlacedStep::add_gradients(Model& model, const GradientTree::Summed& summed) {
  std::optional<SteadyValues> steady;
  if (batches.size() > 1) {
    std::vector<Tensor> values;
    for (const Parameter& p : model.parameters().all()) {
      if (!p.blocks()) values.push_back(p.value());
    }
    steady.emplace(model.parameters().backend(), std::move(values));
  }
  if (cut.parts == 1 && !summed) {
    for (std::size_t batch = 0; batch < batches.size(); ++batch) {
      add_gradients(model, batch, nullptr);
    }
    return;
  }
  GradientTree tree(model.parameters(), cut.parts, summed);
  const auto in_part = [&](std::size_t batch, std::size_t part) {
    return batch < batches.size() && cut.part_of(places[batch]) == part;
  };
  std::size_t batch = 0;
  for (std::size_t part = 0; part < static_cast<std::size_t>(cut.parts); ++part) {
    for (; in_part(batch, part); ++batch) {
      add_gradients(model, batch, in_part(batch + 1, part) ? nullptr : &tree);
    }
    tree.end_part();
  }
}

/// Computes the gradients of one batch and adds them to the parameters' gradients. A step consists
/// of parts, and a part of batches. For the last batch of a part, `tree` is the tree that adds the
/// gradients of all parts. For all other batches, `tree` is null.
void PlacedStep::add_gradients(Model& model, std::size_t batch, GradientTree* tree) {
  if (begins) begins(places[batch]);
  const auto at = static_cast<std::int64_t>(batch);
  Tape tape;
  if (tree) tree->watch(tape);
  Loss loss;
  // Selects the random numbers of this batch. Blocks that are recomputed in the backward pass draw
  // the same numbers again.
  const Noise::Drawing noise(*model.parameters().noise(), places[batch]);
  {
    const Recording recording(tape);
    loss = model.loss(batches[batch]);
  }
  tape.backward(loss.value, shares.slice(at, 1));
  put(loss.value.value(), numbers, at);
  if (loss.hits) put(loss.hits, numbers, std::ssize(batches) + at);
  choices = choices && loss.hits;
}

}  // namespace longhand::nn
