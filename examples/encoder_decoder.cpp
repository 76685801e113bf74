// An encoder and a decoder learn to reverse digits. The encoder's attention has no causal mask. The
// decoder writes one digit after another, and its cross attention reads every encoder output.
#include <longhand/longhand.h>

#include <iostream>

using namespace longhand;
constexpr std::int64_t width = 32, heads = 4, longest = 10, start = 10, end = 11, symbols = 12;

class Reverser final : public nn::Model {
 public:
  explicit Reverser(Backend& backend) : Model(backend, /*seed=*/1) {}

  nn::Loss loss(const nn::PlacedBatch& batch) override {
    const nn::Input &source = batch.tokens_of("source"), &target = batch.input;
    Var x = symbol(source.ids) + place(source.positions);
    x = encoder(x, x, {.queries = source.segments, .causal = false});
    Var y = symbol(target.ids) + place(target.positions);
    y = decoder(y, y, {.queries = target.segments});
    y = cross(y, x, {.queries = target.segments, .keys = source.segments, .causal = false});
    return nn::cross_entropy(last(norm(y)), batch);
  }

 private:
  /// Attention of the rows of x to the rows of `read`, and a network for each row.
  struct Block {
    nn::Scope at;
    nn::LayerNorm norm1{at / "norm1", width, 1e-5}, norm2{at / "norm2", width, 1e-5};
    nn::Linear q{at / "q", width, width}, kv{at / "kv", width, 2 * width};
    nn::Linear out{at / "out", width, width};
    nn::Linear up{at / "up", width, 4 * width}, down{at / "down", 4 * width, width};

    Var operator()(const Var& x, const Var& read, ScoreVars scores) const {
      const Var keys = kv(norm1(read));  // keys and values side by side
      scores.q = all_columns(q(norm1(x)), heads);
      scores.k = {keys, 0, heads, width / heads};
      const Var seen = out(attention(scores, {keys, width, heads, width / heads}), {.residual = x});
      return down(up(norm2(seen), {.f = Activation::gelu}), {.residual = seen});
    }
  };
  nn::Embedding symbol{scope() / "symbol", symbols, width};
  nn::Embedding place{scope() / "place", longest + 1, width};
  Block encoder{scope() / "encoder"}, decoder{scope() / "decoder"}, cross{scope() / "cross"};
  nn::LayerNorm norm{scope() / "norm", width, 1e-5};
  nn::Linear last{scope() / "last", width, symbols};
};

/// 64 sources of 1 to 10 random digits. For the source 1 2 3, the decoder reads start 3 2 1 and
/// must write 3 2 1 end.
nn::Batch reversals(Rng& rng) {
  nn::Batch batch;
  for (int i = 0; i < 64; ++i) {
    std::vector<std::int32_t> digits(1 + rng.below(longest));
    for (std::int32_t& digit : digits) digit = static_cast<std::int32_t>(rng.below(10));
    batch.named_tokens["source"].append(digits);
    std::vector<std::int32_t> read{start}, written(digits.rbegin(), digits.rend());
    read.insert(read.end(), written.begin(), written.end());
    written.push_back(end);
    batch.append(read, written);
  }
  return batch;
}

int main() {
  const auto backend = make_cpu_backend();
  Reverser model(*backend);
  const auto print = [](const nn::StepReport& report) {
    if (report.step % 100 == 0) {
      std::cout << "step " << report.step << "  loss " << report.loss << '\n';
    }
  };
  nn::Trainer(model, nn::drawn_batches(/*seed=*/2, reversals),
              {.steps = 1000, .schedule = {.peak = 5e-3, .warm_up = 50}}, {.report = print})
      .run();
  Rng fresh(3, Purpose::evaluation);
  const double right = model.loss_of(reversals(fresh)).hits.item();
  std::cout << "right: " << 100 * right << "% of the symbols of new sequences\n";
  return right > 0.99 ? 0 : 1;
}
