// A training loop written out: record the operations on a tape, compute gradients, and let the
// optimizer change the parameters. nn::Trainer runs such a loop, and saves and evaluates the model.
#include <longhand/longhand.h>

#include <cmath>
#include <iostream>

using namespace longhand;

int main() {
  const auto backend = make_cpu_backend();
  nn::Parameters parameters(*backend, {}, /*seed=*/1);
  const nn::Scope scope(parameters);
  const nn::Linear first(scope / "first", 2, 64), second(scope / "second", 64, 64);
  const nn::Linear last(scope / "last", 64, 2);
  const auto optimizer = nn::make_optimizer(parameters, nn::AdamOptions{.clip = 1});

  Rng rng(2);  // draws the training points
  double right = 0;
  for (int step = 1; step <= 400; ++step) {
    // 256 points on two spirals. The class of a point is the number of its spiral.
    std::vector<double> points;
    std::vector<std::int32_t> classes;
    for (int i = 0; i < 256; ++i) {
      const int spiral = rng.chance(0.5);
      const double angle = 7 * rng.uniform(), turned = angle + 3.14159 * spiral;
      points.insert(points.end(), {angle * std::cos(turned) / 7, angle * std::sin(turned) / 7});
      classes.push_back(spiral);
    }
    const Tensor x = Tensor::from(*backend, {256, 2}, DType::f32, points);
    const Tensor targets = Tensor::from(*backend, {256, 1}, classes);

    const Tensor hits(*backend, {1}, DType::f32);  // receives the share of right predictions
    Tape tape;
    Var loss;
    {
      const Recording recording(tape);  // operations are recorded as long as this object exists
      const Var hidden = activate(Activation::tanh, second(activate(Activation::relu, first(x))));
      loss = cross_entropy(last(hidden), targets, {.hits = hits});
    }
    tape.backward(loss);                       // computes the gradient of each parameter
    optimizer->prepare(/*rate=*/0.005, step);  // steps count from 1
    optimizer->step(loss.value());             // changes the parameters and clears their gradients

    right = hits.item();
    if (step % 100 == 0) {
      std::cout << "step " << step << "  loss " << loss.value().item() << "  right " << 100 * right
                << "%\n";
    }
  }
  return right > 0.97 ? 0 : 1;
}
