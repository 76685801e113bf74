// A transformer with First-After-Last heads learns to remember a bit. In `w1 i0 i1 r1`, w writes a
// bit, i is ignored and r reads: the model must predict the bit after r, which is the bit written
// last, however many instructions are ignored in between.
#include <longhand/longhand.h>
#include <longhand/tasks/flip_flop.h>

#include <iostream>

using namespace longhand;

/// A batch of 16 samples of a task. Only the bits that are read are targets.
nn::Batch samples(const tasks::Task& task, Rng& rng) {
  nn::Batch batch;
  for (int i = 0; i < 16; ++i) {
    const tasks::Sample sample = task.sample(rng, 0);
    batch.append(sample.tokens, sample.targets);
  }
  return batch;
}

int main() {
  const auto train = tasks::FlipFlop{.instructions = 32, .ignore = 0.6}.make();
  const auto longer = tasks::FlipFlop{.instructions = 256, .ignore = 0.95}.make();

  const auto backend = make_cpu_backend();
  nn::Decoder model(
      *backend,
      {.vocabulary = train->vocabulary().size(),
       .width = 32,
       .layers = 2,
       .mixers = {{nn::heads_of<nn::SoftmaxHeads>(3, 8), nn::heads_of<nn::FalHeads>(1, 8)}},
       .inner = 64},
      /*seed=*/1);
  const auto print = [](const nn::StepReport& report) {
    if (report.step % 50 == 0) {
      std::cout << "step " << report.step << "  loss " << report.loss << "  right "
                << 100 * report.accuracy.value_or(0) << "%\n";
    }
  };
  nn::Trainer(model, nn::drawn_batches(/*seed=*/2, [&](Rng& rng) { return samples(*train, rng); }),
              {.steps = 200, .schedule = {.peak = 1e-2, .warm_up = 50}}, {.report = print})
      .run();

  Rng fresh(3, Purpose::evaluation);
  const double right = model.loss_of(samples(*longer, fresh)).hits.item();
  std::cout << "8 times longer, and sparser: " << 100 * right << "% of the reads are right\n";
  return right > 0.9 ? 0 : 1;
}
