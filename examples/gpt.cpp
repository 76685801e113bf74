// A GPT written out: embeddings, blocks of attention and feed forward, and an output layer. It
// learns an ASCII text character by character and continues it. Usage: gpt TEXT_FILE
#include <longhand/longhand.h>

#include <algorithm>
#include <fstream>
#include <iostream>

using namespace longhand;
constexpr std::int64_t width = 64, heads = 4, layers = 2, context = 64;

class Gpt final : public nn::Model {
 public:
  explicit Gpt(Backend& backend) : Model(backend, /*seed=*/1) {
    for (std::int64_t i = 0; i < layers; ++i) blocks.push_back({scope() / "blocks" / i});
  }

  /// Returns the logits of the next character for each token, [tokens, 128].
  Var logits(const nn::Input& input) const {
    Var x = characters(input.ids) + positions(input.positions);
    for (const Block& block : blocks) {
      const Var qkv = block.qkv(block.norm1(x));  // queries, keys and values side by side
      const HeadVars q{qkv, 0, heads, width / heads}, k{qkv, width, heads, width / heads};
      const HeadVars v{qkv, 2 * width, heads, width / heads};
      const Var read = attention({.q = q, .k = k, .queries = input.segments}, v);
      x = block.out(read, {.residual = x});
      x = block.down(block.up(block.norm2(x), {.f = Activation::gelu}), {.residual = x});
    }
    return last(norm(x));
  }
  nn::Loss loss(const nn::PlacedBatch& batch) override {
    return nn::cross_entropy(logits(batch.input), batch);
  }

 private:
  struct Block {
    nn::Scope at;
    nn::LayerNorm norm1{at / "norm1", width, 1e-5}, norm2{at / "norm2", width, 1e-5};
    nn::Linear qkv{at / "qkv", width, 3 * width}, out{at / "out", width, width};
    nn::Linear up{at / "up", width, 4 * width}, down{at / "down", 4 * width, width};
  };
  nn::Embedding characters{scope() / "characters", 128, width, nn::normal(0.1)};
  nn::Embedding positions{scope() / "positions", context, width, nn::normal(0.1)};
  std::vector<Block> blocks;
  nn::LayerNorm norm{scope() / "norm", width, 1e-5};
  nn::Linear last{scope() / "last", width, 128};
};

int main(int count, char** arguments) {
  std::ifstream file(count == 2 ? arguments[1] : "");
  const std::vector<std::int32_t> text(std::istreambuf_iterator<char>(file), {});
  if (std::ssize(text) <= context || std::ranges::min(text) < 0) {
    return std::cerr << "usage: gpt FILE_OF_ASCII_TEXT\n", 2;
  }
  const auto pieces = [&](Rng& rng) {
    nn::Batch batch;
    for (int i = 0; i < 16; ++i) {
      const auto begin = rng.below(static_cast<std::uint32_t>(std::ssize(text) - context));
      const std::span piece = std::span(text).subspan(begin, context + 1);
      batch.append(piece.first(context), piece.last(context));  // each target is the next character
    }
    return batch;
  };
  const auto backend = make_cpu_backend();
  Gpt model(*backend);
  nn::Trainer(model, nn::drawn_batches(/*seed=*/2, pieces),
              {.steps = 200, .schedule = {.peak = 3e-3, .warm_up = 20}})
      .run();
  std::vector<std::int32_t> line(text.begin(), text.begin() + 16);
  while (std::ssize(line) < context) {
    const Tensor next = model.logits(nn::make_input(*backend, line)).value();
    const auto of_last = next.slice(next.rows() - 1, 1).to_doubles();
    line.push_back(static_cast<int>(std::ranges::max_element(of_last) - of_last.begin()));
  }
  Rng fresh(3);
  const double loss = model.loss_of(pieces(fresh)).value.value().item();
  std::cout << "loss " << loss << ": " << std::string(line.begin(), line.end()) << '\n';
  return loss < 2 ? 0 : 1;  // uniform guessing has a loss of ln 128 = 4.9
}
