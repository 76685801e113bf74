// A custom operation: y = relu(x)^2 (So et al. 2021), its derivative, its gradient check, and a
// network that uses it. It is composed of operations that every backend implements, so it runs on
// every backend.
#include <longhand/longhand.h>

#include <cmath>
#include <iostream>

using namespace longhand;

/// y = r^2 with r = relu(x);  dx = 2 r dy
Var squared_relu(const Var& x) {
  Backend& backend = x.backend();
  const Tensor r = empty_like(x.value()), y = empty_like(x.value());
  backend(Activate{.f = Activation::relu, .x = x.value(), .y = r});
  backend(Combine{.f = Combination::product, .a = r, .b = r, .y = y});
  return record("squared_relu", {&x}, y, [r, dx = x.sink()](const Tensor& dy) {
    const Tensor twice = empty_like(dy);
    dy.backend()(Scale{.x = dy, .alpha = 2, .y = twice});
    dy.backend()(Combine{.f = Combination::product, .a = twice, .b = r, .y = dx.target()});
  });
}

class Parabola final : public nn::Model {
 public:
  explicit Parabola(Backend& backend) : Model(backend, /*seed=*/1) {}
  nn::Loss loss(const nn::PlacedBatch& batch) override {
    return nn::squared_error(second(squared_relu(first(batch.features))), batch);
  }

 private:
  nn::Linear first{scope() / "first", 1, 8}, second{scope() / "second", 8, 1};
};

/// A batch of 64 random points x from -1 to 1, with the targets x^2.
nn::Batch points(Rng& rng) {
  nn::Batch batch{.features = {{64, 1}}, .values = {{64, 1}}};
  for (int i = 0; i < 64; ++i) {
    const double x = 2 * rng.uniform() - 1;
    batch.features.values.push_back(x);
    batch.values.values.push_back(x * x);
  }
  return batch;
}

int main() {
  // Gradient check: compares each derivative of squared_relu() with a difference quotient, in f64.
  const auto reference = make_reference_backend();
  const GradcheckResult check =
      gradcheck([](std::span<const Var> x) { return squared_relu(x[0]); },
                {{.shape = {2, 3}, .values = {-2, -0.5, 0.25, 1, 3, 10}}}, *reference);
  std::cout << "gradcheck: " << check.entries << " derivatives, at most " << check.worst
            << " off\n";
  if (!check.passed()) return 1;

  const auto backend = make_cpu_backend();
  Parabola model(*backend);
  double loss = 0;
  nn::Trainer(model, nn::drawn_batches(/*seed=*/2, points),
              {.steps = 300, .schedule = {.peak = 0.02}},
              {.report = [&](const nn::StepReport& report) { loss = report.loss; }})
      .run();
  std::cout << "x^2 out of relu(x)^2: " << std::sqrt(loss) << " off\n";
  return std::sqrt(loss) < 0.02 ? 0 : 1;
}
