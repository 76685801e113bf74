// A network of two layers learns which points of the square lie inside the unit circle.
#include <autograd/loss.h>
#include <autograd/matmul.h>
#include <autograd/tape.h>
#include <core/rng.h>

#include <cstdio>

using namespace longhand;

int main() {
  const auto backend = make_cpu_backend();
  Rng rng(1, Purpose::parameters);
  const auto parameter = [&](const Shape& shape, double deviation) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    for (double& value : values) value = deviation * rng.normal();
    return Var(Tensor::from(*backend, shape, DType::f32, values), true);
  };
  const std::vector<Var> parameters{parameter({2, 32}, 1), parameter({32}, 1),
                                    parameter({32, 2}, 0.2), parameter({2}, 0)};
  Adam adam{.rate = 0.02};
  for (const Var& p : parameters) {
    adam.parameters.push_back(p.value());
    adam.m.push_back(Tensor::zeros(*backend, p.shape(), DType::f32));
    adam.v.push_back(Tensor::zeros(*backend, p.shape(), DType::f32));
    adam.decay.push_back(0);
  }
  for (adam.step = 1; adam.step <= 200; ++adam.step) {
    std::vector<double> points;
    std::vector<std::int32_t> inside;
    for (Rng data(1, Purpose::data, static_cast<std::uint64_t>(adam.step)); inside.size() < 256;) {
      const double x = 3 * data.uniform() - 1.5, y = 3 * data.uniform() - 1.5;
      points.insert(points.end(), {x, y});
      inside.push_back(x * x + y * y < 1);
    }
    Tape tape;
    const Recording recording(tape);
    const Var x = Tensor::from(*backend, {256, 2}, DType::f32, points);
    const Var hidden =
        matmul(x, parameters[0], {.bias = parameters[1], .f = Activation::gelu_tanh});
    const Var logits = matmul(hidden, parameters[2], {.bias = parameters[3]});
    const Var loss = cross_entropy(logits, Tensor::from(*backend, {256}, inside));
    tape.backward(loss);
    adam.gradients.clear();
    for (const Var& p : parameters) adam.gradients.push_back(p.grad());
    (*backend)(adam);
    for (const Var& p : parameters) p.clear_grad();
    if (adam.step % 50 == 0)
      std::printf("step %3d  loss %.4f\n", int(adam.step), loss.value().item());
  }
}
