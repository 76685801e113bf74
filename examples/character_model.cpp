// A small transformer learns a text, character by character, and continues its beginning.
#include <longhand/longhand.h>

#include <array>
#include <fstream>
#include <iostream>
#include <iterator>

using namespace longhand;

constexpr std::int64_t window = 64;  // length of a training sample in characters

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: character_model TEXT_FILE\n";
    return 2;
  }
  std::ifstream file(arguments[1]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::int32_t> tokens;  // one token per byte of the text
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  if (std::ssize(tokens) <= window) {
    std::cerr << arguments[1] << ": expected a text of more than " << window << " characters\n";
    return 2;
  }

  const auto backend = make_cpu_backend();
  nn::Decoder model(*backend,
                    {.vocabulary = 256,
                     .width = 64,
                     .layers = 2,
                     .mixers = {{nn::heads_of<nn::SoftmaxHeads>(4, 16)}},
                     .inner = 256},
                    /*seed=*/1);

  // Draws 16 pieces of the text. The target of each character is the next character.
  const auto pieces = [&](Rng& rng) {
    nn::Batch batch;
    for (int i = 0; i < 16; ++i) {
      const auto begin = rng.below(static_cast<std::uint32_t>(std::ssize(tokens) - window));
      const std::span piece = std::span(tokens).subspan(begin, window + 1);
      batch.append(piece.first(window), piece.last(window));
    }
    return batch;
  };
  double loss = 0;
  const auto print = [&](const nn::StepReport& report) {
    loss = report.loss;
    if (report.step % 50 == 0) std::cout << "step " << report.step << "  loss " << loss << '\n';
  };
  nn::Trainer(model, nn::drawn_batches(/*seed=*/2, pieces),
              {.steps = 300,
               .schedule = {.peak = 5e-3, .warm_up = 20},
               .optimizer = nn::AdamOptions{.decay = 0.01, .clip = 1}},
              {.report = print})
      .run();

  const std::vector<std::int32_t> prompt(tokens.begin(), tokens.begin() + 20);
  const auto continued = nn::generate(model, std::array{prompt}, {.most = 40}).front();
  std::cout << text.substr(0, prompt.size()) << '|'
            << std::string(continued.begin(), continued.end()) << '\n';
  return loss < 2 ? 0 : 1;  // uniform guessing has a loss of ln 256 = 5.5
}
