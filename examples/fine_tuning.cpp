// Trains and saves a model, then loads it and trains it on a similar task. In the second training,
// the first layer is frozen, the second has a low learning rate, and the last has the full rate.
#include <longhand/longhand.h>

#include <cmath>
#include <filesystem>
#include <iostream>

using namespace longhand;

class Wave final : public nn::Model {
 public:
  explicit Wave(Backend& backend) : Model(backend, /*seed=*/1) {}
  nn::Loss loss(const nn::PlacedBatch& batch) override {
    const Var hidden =
        second(first(batch.features, {.f = Activation::tanh}), {.f = Activation::tanh});
    return nn::squared_error(last(hidden), batch);
  }

  nn::Linear first{scope() / "first", 1, 32}, second{scope() / "second", 32, 32};
  nn::Linear last{scope() / "last", 32, 1};
};

/// Batches of 128 random points x from -2 to 2, with the targets f(x).
nn::BatchSource points_of(double (*f)(double)) {
  return nn::drawn_batches(/*seed=*/2, [f](Rng& rng) {
    nn::Batch batch{.features = {{128, 1}}, .values = {{128, 1}}};
    for (int i = 0; i < 128; ++i) {
      const double x = 4 * rng.uniform() - 2;
      batch.features.values.push_back(x);
      batch.values.values.push_back(f(x));
    }
    return batch;
  });
}

/// Trains the model to predict f(x). Returns the loss of the last step.
double train(Wave& model, double (*f)(double), const nn::TrainerOptions& options) {
  double loss = 0;
  nn::Trainer(model, points_of(f), options,
              {.report = [&](const nn::StepReport& report) { loss = report.loss; }})
      .run();
  return loss;
}

int main() {
  const auto backend = make_cpu_backend();
  const std::filesystem::path folder = "wave";
  {
    Wave model(*backend);
    const double loss = train(model, [](double x) { return std::sin(3 * x); },
                              {.steps = 1000, .schedule = {.peak = 0.01}});
    nn::save_checkpoint(folder, {}, model.parameters());
    std::cout << "sin 3x, 1000 steps: loss " << loss << '\n';
  }

  Wave model(*backend);
  nn::load_checkpoint(folder, model.parameters());
  const auto first = model.first.weight.value().to_doubles();
  const double loss =
      train(model, [](double x) { return std::sin(3 * x + 0.5); },
            {.steps = 400,
             .schedule = {.peak = 0.01},
             .groups = {{.parameters = model.parameters().under("first"), .frozen = true},
                        {.parameters = model.parameters().under("second"), .rate = 0.3}}});
  const bool kept = model.first.weight.value().to_doubles() == first;
  std::cout << "then sin(3x + 0.5), 400 steps: loss " << loss << ", the first layer is "
            << (kept ? "as it was" : "changed") << '\n';
  return loss < 0.02 && kept ? 0 : 1;
}
