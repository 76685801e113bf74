// A custom optimizer, used by nn::Trainer. It is a class whose function apply() computes the new
// values of the parameters. The base class nn::Optimizer clips the gradients, handles groups of
// parameters and ranks, and saves the state of the optimizer with the model.
#include <longhand/longhand.h>

#include <iostream>

using namespace longhand;

/// The optimizer Lion (Chen et al. 2023), for a parameter w with gradient g and momentum m:
///   u = sign(0.9 m + 0.1 g);  w = w - rate (u + decay w);  m = 0.99 m + 0.01 g
class Lion final : public nn::Optimizer {
 public:
  Lion(const nn::Parameters& parameters, Groups groups, nn::Communicator* ranks)
      : Optimizer(parameters, {.decay = 0.1, .clip = 1, .state = {"m"}}, groups, ranks) {}
  std::string_view kind() const override { return "lion"; }

 private:
  void apply(const Update& update) const override {
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const Var w = update.parameters[i], m = update.state[0][i];
      const Var g = Var(update.gradients[i]) * Var(update.factor);
      const Var c = 0.9 * m + 0.1 * g, zero = number_like(c, 0);
      const Var sign = less(zero, c) - less(c, zero);
      update.assign(w.value(), w - Var(update.now) * (sign + update.decay[i] * w));
      update.assign(m.value(), 0.99 * m + 0.01 * g);
    }
  }
};

class Ring final : public nn::Model {
 public:
  explicit Ring(Backend& backend) : Model(backend, /*seed=*/1) {}
  nn::Loss loss(const nn::PlacedBatch& batch) override {
    return nn::cross_entropy(last(first(batch.features, {.f = Activation::relu})), batch);
  }

 private:
  nn::Linear first{scope() / "first", 2, 64}, last{scope() / "last", 64, 2};
};

/// 256 random points of a square. A point has class 1 if its distance to the centre is from 0.5 to
/// 1.
nn::Batch points(Rng& rng) {
  nn::Batch batch{.features = {{256, 2}}};
  for (int i = 0; i < 256; ++i) {
    const double x = 3 * rng.uniform() - 1.5, y = 3 * rng.uniform() - 1.5;
    batch.features.values.insert(batch.features.values.end(), {x, y});
    batch.targets.push_back(x * x + y * y > 0.25 && x * x + y * y < 1);
  }
  return batch;
}

int main() {
  const auto backend = make_cpu_backend();
  Ring model(*backend);
  const auto lion = [](const nn::Parameters& parameters, auto groups, nn::Communicator* ranks) {
    return std::make_unique<Lion>(parameters, groups, ranks);
  };
  const auto print = [](const nn::StepReport& report) {
    if (report.step % 200 == 0) {
      std::cout << "step " << report.step << "  loss " << report.loss << '\n';
    }
  };
  const nn::Schedule cosine{.curve = nn::Schedule::Curve::cosine, .peak = 5e-3};
  nn::Trainer(model, nn::drawn_batches(/*seed=*/2, points),
              {.steps = 1000, .schedule = cosine, .optimizer = lion}, {.report = print})
      .run();

  Rng fresh(3);
  const double right = model.loss_of(points(fresh)).hits.item();
  std::cout << "right: " << 100 * right << "% of 256 points that it has not seen\n";
  return right > 0.95 ? 0 : 1;
}
