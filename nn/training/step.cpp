#include "nn/training/step.h"

#include "autograd/tape.h"

namespace longhand::nn {
namespace {

void put(const Tensor& number, const Tensor& numbers, std::int64_t at) {
  numbers.backend()(Copy{.x = number, .y = numbers.slice(at, 1)});
}

}  // namespace

PlacedStep::PlacedStep(Model& model, const Step& step) : first_part(step.first_part) {
  Backend& backend = model.parameters().backend();
  const DType type = model.parameters().type();
  const auto count = std::ssize(step.parts);
  shares = Tensor(backend, {count}, type);
  numbers = Tensor::zeros(backend, {2 * count + 1}, type);
  for (const Batch& part : step.parts) parts.push_back(place(backend, part, type));
  prepare(model, step);
}

void PlacedStep::assign(Model& model, const Step& step) {
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].assign(step.parts[i]);
  prepare(model, step);
}

void PlacedStep::prepare(Model& model, const Step& step) const {
  for (const PlacedBatch& part : parts) model.prepare(part.input.longest);
  model.parameters().noise()->prepare(step.report.step);
  shares.assign(step.shares);
}

void PlacedStep::put_norm(const Tensor& norm) const { put(norm, numbers, numbers.size() - 1); }

void PlacedStep::add_gradients(Model& model) {
  const auto count = std::ssize(parts);
  for (std::int64_t i = 0; i < count; ++i) {
    Tape tape;
    Loss loss;
    {
      const Noise::Drawing noise(*model.parameters().noise(), first_part + i);
      const Recording recording(tape);
      loss = model.loss(parts[static_cast<std::size_t>(i)]);
    }
    tape.backward(loss.value, shares.slice(i, 1));
    put(loss.value.value(), numbers, i);
    if (loss.hits) put(loss.hits, numbers, count + i);
    choices = choices && loss.hits;
  }
}

}  // namespace longhand::nn
