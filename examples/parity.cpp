// A GRU reads bits one by one and answers after each whether the number of ones so far is odd.
// Sequences have different lengths. They lie one after another, without padding.
#include <longhand/longhand.h>

#include <iostream>

using namespace longhand;

class Parity final : public nn::Model {
 public:
  explicit Parity(Backend& backend) : Model(backend, /*seed=*/1) {}
  nn::Loss loss(const nn::PlacedBatch& batch) override {
    const Var bits = embedding(batch.input.ids);
    const Var states = gru(bits, batch.input.segments);  // [tokens, 16]
    return nn::cross_entropy(last(states), batch);
  }
  bool repeats() const override { return false; }  // operations depend on the sequences' lengths

 private:
  nn::Embedding embedding{scope() / "embedding", 2, 8};
  nn::Gru gru{scope() / "gru", 8, 16};
  nn::Linear last{scope() / "last", 16, 2};
};

/// 32 sequences of half `longest` to `longest` bits.
nn::Batch sequences(Rng& rng, std::uint64_t longest) {
  nn::Batch batch;
  for (int i = 0; i < 32; ++i) {
    std::vector<std::int32_t> bits(longest - rng.below(longest / 2 + 1)), odd;
    for (std::int32_t& bit : bits) {
      bit = rng.chance(0.5);
      odd.push_back(odd.empty() ? bit : odd.back() ^ bit);
    }
    batch.append(bits, odd);
  }
  return batch;
}

int main() {
  const auto backend = make_cpu_backend();
  Parity model(*backend);
  const auto print = [](const nn::StepReport& report) {
    if (report.step % 100 == 0) {
      std::cout << "step " << report.step << "  loss " << report.loss << '\n';
    }
  };
  nn::Trainer(model, nn::drawn_batches(/*seed=*/2, [](Rng& rng) { return sequences(rng, 12); }),
              {.steps = 400,
               .schedule = {.peak = 0.02, .warm_up = 20},
               .optimizer = nn::AdamOptions{.clip = 1}},
              {.report = print})
      .run();
  Rng fresh(3, Purpose::evaluation);
  const double right = model.loss_of(sequences(fresh, 100)).hits.item();
  std::cout << "right: " << 100 * right << "% after each bit of sequences 8 times longer\n";
  return right > 0.95 ? 0 : 1;
}
