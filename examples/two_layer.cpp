// A network of two layers learns which points of a square are inside the unit circle.
#include <longhand/longhand.h>

#include <iostream>

using namespace longhand;

class Circle final : public nn::Model {
 public:
  explicit Circle(Backend& backend) : Model(backend, /*seed=*/1) {}

  nn::Loss loss(const nn::PlacedBatch& batch) override {
    const Var hidden = first(batch.features, {.f = Activation::tanh});
    return nn::cross_entropy(second(hidden), batch);
  }

 private:
  nn::Linear first{scope() / "first", 2, 32};
  nn::Linear second{scope() / "second", 32, 2};
};

/// 256 random points of a square. Points inside the unit circle have class 1.
nn::Batch points(Rng& rng) {
  nn::Batch batch{.features = {{256, 2}}};
  for (int i = 0; i < 256; ++i) {
    const double x = 3 * rng.uniform() - 1.5, y = 3 * rng.uniform() - 1.5;
    batch.features.values.insert(batch.features.values.end(), {x, y});
    batch.targets.push_back(x * x + y * y < 1);
  }
  return batch;
}

int main() {
  const auto backend = make_cpu_backend();
  Circle model(*backend);

  const auto print = [](const nn::StepReport& report) {
    if (report.step % 50 == 0) {
      std::cout << "step " << report.step << "  loss " << report.loss << '\n';
    }
  };
  nn::Trainer trainer(model, nn::drawn_batches(/*seed=*/2, points),
                      {.steps = 200, .schedule = {.peak = 0.02}}, {.report = print});
  trainer.run();

  Rng fresh(3, Purpose::evaluation);
  const double right = model.loss_of(points(fresh)).hits.item();
  std::cout << "right: " << 100 * right << "% of 256 points that it has not seen\n";
  return right > 0.95 ? 0 : 1;
}
