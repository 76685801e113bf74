// A network of two layers learns which points of a square lie inside the unit circle.
#include <autograd/loss.h>
#include <autograd/matmul.h>
#include <autograd/tape.h>
#include <core/rng.h>

#include <iostream>

using namespace longhand;

int main() {
  const auto backend = make_cpu_backend();
  Rng rng(1, Purpose::parameters);
  Adam adam;
  std::vector<Var> weights;
  for (const Shape& shape : {Shape{2, 32}, Shape{32}, Shape{32, 2}, Shape{2}}) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    for (double& value : values) value = 0.5 * rng.normal();
    weights.emplace_back(Tensor::from(*backend, shape, DType::f32, values), true);
    adam.parameters.push_back(weights.back().value());
    adam.m.push_back(Tensor::zeros(*backend, shape, DType::f32));
    adam.v.push_back(Tensor::zeros(*backend, shape, DType::f32));
    adam.decay.push_back(0);
  }
  adam.now = Tensor(*backend, {3}, DType::f32);
  for (int step = 1; step <= 200; ++step) {
    std::vector<double> points;
    std::vector<std::int32_t> inside;
    while (inside.size() < 256) {
      const double x = 3 * rng.uniform() - 1.5, y = 3 * rng.uniform() - 1.5;
      points.insert(points.end(), {x, y});
      inside.push_back(x * x + y * y < 1);
    }
    Tape tape;
    const Recording recording(tape);
    const Var x = Tensor::from(*backend, {256, 2}, DType::f32, points);
    const Var hidden = matmul(x, weights[0], {.bias = weights[1], .f = Activation::gelu_tanh});
    const Var logits = matmul(hidden, weights[2], {.bias = weights[3]});
    const Var loss = cross_entropy(logits, Tensor::from(*backend, {256, 1}, inside));
    tape.backward(loss);
    adam.gradients.clear();
    for (const Var& weight : weights) adam.gradients.push_back(weight.grad());
    adam.now.assign(adam_now(0.02, step));
    (*backend)(adam);
    for (const Var& weight : weights) weight.clear_grad();
    if (step % 50 == 0) std::cout << "step " << step << " loss " << loss.value().item() << '\n';
  }
}
