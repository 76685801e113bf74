#include "nn/training/step.h"

#include "autograd/tape.h"
#include "nn/training/gradient_tree.h"

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

void PlacedStep::add_gradients(Model& model, const std::function<void(std::int64_t)>& begins) {
  GradientTree tree(model.parameters());
  std::size_t batch = 0;
  for (std::size_t part = 0; part < static_cast<std::size_t>(cut.parts); ++part) {
    for (; batch < batches.size() && cut.part_of(places[batch]) == part; ++batch) {
      if (begins) begins(places[batch]);
      add_gradients_of(model, batch);
    }
    if (cut.parts > 1) tree.push();
  }
  if (cut.parts > 1) tree.put_sum();
}

void PlacedStep::add_gradients_of(Model& model, std::size_t batch) {
  const auto at = static_cast<std::int64_t>(batch);
  Tape tape;
  Loss loss;
  {
    const Noise::Drawing noise(*model.parameters().noise(), places[batch]);
    const Recording recording(tape);
    loss = model.loss(batches[batch]);
  }
  tape.backward(loss.value, shares.slice(at, 1));
  put(loss.value.value(), numbers, at);
  if (loss.hits) put(loss.hits, numbers, std::ssize(batches) + at);
  choices = choices && loss.hits;
}

}  // namespace longhand::nn
