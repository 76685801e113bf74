// Trains a model with heads of every kind on two threads. The thread sanitizer ends the program if
// there is a race. Prints the instruction set, because a race may be in the kernels of one
// instruction set only.
#include <cstdlib>
#include <exception>
#include <iostream>

#include "core/cpu/isa.h"
#include "core/error.h"
#include "nn/models/decoder.h"
#include "nn/training/trainer.h"

using namespace longhand;

namespace {

nn::Batch batch_of(std::int64_t step, std::int64_t part) {
  Rng rng(1, Purpose::test, static_cast<std::uint64_t>(step), static_cast<std::uint32_t>(part));
  nn::Batch batch;
  for (const std::int32_t length : {1, 7, 64, 130, 300}) {
    batch.lengths.push_back(length);
    for (std::int32_t i = 0; i < length; ++i) {
      batch.tokens.push_back(static_cast<std::int32_t>(rng.below(50)));
      batch.targets.push_back((batch.tokens.back() + 1) % 50);
    }
  }
  return batch;
}

double loss_after(std::int64_t steps, Math math) {
  const auto backend = make_cpu_backend({.threads = 2, .math = math});
  nn::DecoderConfig config{.vocabulary = 50, .width = 64, .layers = 2, .mixers = {}, .inner = 192};
  config.mixers = {nn::parse_mixers("softmax:2,fal:1,chacal:1", config.width)};
  nn::Decoder model(*backend, config, 1);
  double loss = 0;
  nn::Trainer trainer(
      model, batch_of,
      {.steps = steps, .accumulation = 2, .schedule = {.peak = 1e-2, .steps = steps}},
      {.report = [&](const nn::StepReport& report) { loss = report.loss; }});
  trainer.run();
  return loss;
}

}  // namespace

int main() try {
  std::cout << "kernels: " << cpu::name_of(cpu::choose_isa()) << '\n';
  for (const Math math : {Math::exact, Math::fast, Math::bf16}) {
    const double first = loss_after(1, math), last = loss_after(4, math);
    std::cout << name_of(math) << ": loss " << first << ", after 4 steps " << last << '\n';
    LONGHAND_CHECK(last < first, "expected training to lower the loss of ", first, ", got ", last);
  }
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return EXIT_FAILURE;
}
