// Fits a curve to noisy points. Inputs and targets are floats, and the optimizer is gradient
// descent with momentum.
#include <longhand/longhand.h>

#include <cmath>
#include <iomanip>
#include <iostream>

using namespace longhand;

class Curve final : public nn::Model {
 public:
  explicit Curve(Backend& backend) : Model(backend, /*seed=*/1) {}

  Var operator()(const Var& x) const {
    const Var hidden = first(x, {.f = Activation::tanh});
    return third(second(hidden, {.f = Activation::tanh}));
  }
  nn::Loss loss(const nn::PlacedBatch& batch) override {
    return nn::squared_error((*this)(batch.features), batch);
  }

 private:
  nn::Linear first{scope() / "first", 1, 32};
  nn::Linear second{scope() / "second", 32, 32};
  nn::Linear third{scope() / "third", 32, 1};
};

/// A batch of 128 random points x from -2 to 2, with the targets sin(2 x) + noise.
nn::Batch points(Rng& rng) {
  nn::Batch batch{.features = {{128, 1}}, .values = {{128, 1}}};
  for (int i = 0; i < 128; ++i) {
    const double x = 4 * rng.uniform() - 2;
    batch.features.values.push_back(x);
    batch.values.values.push_back(std::sin(2 * x) + 0.1 * rng.normal());
  }
  return batch;
}

int main() {
  const auto backend = make_cpu_backend();
  Curve curve(*backend);
  nn::Trainer(curve, nn::drawn_batches(/*seed=*/2, points),
              {.steps = 1500,
               .schedule = {.curve = nn::Schedule::Curve::cosine, .peak = 0.1, .warm_up = 50},
               .optimizer = nn::SgdOptions{.momentum = 0.9, .clip = 1}})
      .run();

  const std::vector<double> x{-1.75, -1, -0.5, 0, 0.5, 1, 1.75};
  const Tensor placed = Tensor::from(*backend, {std::ssize(x), 1}, DType::f32, x);
  const std::vector<double> y = curve(placed).value().to_doubles();
  double worst = 0;
  std::cout << std::fixed << std::setprecision(3) << "     x  sin 2x   curve\n";
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::cout << std::setw(6) << x[i] << std::setw(8) << std::sin(2 * x[i]) << std::setw(8) << y[i]
              << '\n';
    worst = std::max(worst, std::abs(y[i] - std::sin(2 * x[i])));
  }
  std::cout << "at most " << worst << " off, with noise of 0.1\n";
  return worst < 0.1 ? 0 : 1;
}
