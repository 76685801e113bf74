#include "apps/run/evaluation.h"

#include <atomic>
#include <cmath>
#include "tests/check.h"

#include "apps/run/batches.h"
#include "core/backend.h"
#include "nn/models/decode.h"
#include "nn/ranks/threads.h"
#include "nn/training/interruption.h"
#include "nn/training/trainer.h"
#include "tests/make_task.h"

BOOST_AUTO_TEST_SUITE(evaluation_test)

using namespace longhand;
using namespace longhand::app;

namespace {

/// A task with only four different samples. There are two boxes and two objects. One of the objects
/// is in a box, and a sample contains one move.
std::shared_ptr<const tasks::Task> tiny_boxes() {
  return make_task("boxes", {{"version", "advanced"},
                             {"boxes", "2"},
                             {"objects", "2"},
                             {"most-items", "1"},
                             {"operations", "1"},
                             {"split", "all"}});
}

struct Trained {
  explicit Trained(std::int64_t steps)
      : backend(make_backend("cpu", {.threads = 1})),
        model(*backend,
              {.vocabulary = task->vocabulary().size(),
               .width = 16,
               .layers = 1,
               .mixers = nn::parse_layers("softmax:2", 16),
               .inner = 32},
              1) {
    nn::Trainer(model, training_batches(task, 1, {.sequences = 8}),
                {.steps = steps, .schedule = {.peak = 1e-2, .steps = 1000}})
        .run();
  }
  std::shared_ptr<const tasks::Task> task = tiny_boxes();
  std::shared_ptr<Backend> backend;
  nn::Decoder model;
};

}  // namespace

// evaluate() lets the model predict as many tokens as the right answer has. generate() stops at the
// end token. They must find the same number of exact answers.
BOOST_AUTO_TEST_CASE(exact_match_under_teacher_forcing_agrees_with_generation) {
  double seen = 0;
  for (const std::int64_t steps : {0, 10, 20, 30, 40, 60, 100}) {
    Trained run(steps);
    const EvaluationOptions options{.samples = 40, .seed = 3, .reading = Reading::decoded};
    const tasks::Tally tally = evaluate(run.model, *run.task, options);
    double generated = 0;
    for_samples(*run.task, options, [&](std::span<const tasks::Sample> samples) {
      for (const tasks::Sample& sample : samples) {
        const auto given = sample.tokens.begin() + sample.asked.front() + 1;
        const std::vector<std::int32_t> prompt(sample.tokens.begin(), given);
        const auto answer = nn::generate(
            run.model, {&prompt, 1},
            {.most = run.task->longest(), .stops = {run.task->vocabulary().at(" <end>")}});
        generated += answer[0] == std::vector<std::int32_t>(given, sample.tokens.end());
      }
    });
    BOOST_TEST(tally.at("exact").sum == generated);
    seen = std::max(seen, generated);
  }
  BOOST_TEST(seen > 0);
}

BOOST_AUTO_TEST_CASE(the_loss_is_the_mean_over_all_counted_targets) {
  Trained run(5);
  const auto loss = [&](std::int64_t at_once) {
    return evaluate_loss(run.model, *run.task, {.samples = 30, .tokens_at_once = at_once});
  };
  BOOST_TEST(std::abs(loss(100) - loss(100'000)) < 1e-5);
  BOOST_TEST(loss(100) > 0.1);
  // The evaluation loss must equal the training loss of one batch that contains all samples.
  for_samples(*run.task, {.samples = 30, .tokens_at_once = 100'000},
              [&](std::span<const tasks::Sample> samples) {
                const double whole =
                    run.model.loss_of(batch_of(samples, *run.task)).value.value().item();
                BOOST_TEST(std::abs(whole - loss(100'000)) < 1e-6);
              });
}

// Each of n ranks (processes) evaluates every n-th sample. The scores are added in the order of the
// samples, so every rank has the same result as a single process.
BOOST_AUTO_TEST_CASE(several_ranks_compute_the_same_scores_as_one) {
  for (const Reading reading : {Reading::forced, Reading::decoded}) {
    const EvaluationOptions options{
        .samples = 30, .tokens_at_once = 60, .seed = 3, .reading = reading};
    Trained one(20);
    const tasks::Tally alone = evaluate(one.model, *one.task, options);
    for (const int size : {2, 4}) {
      nn::run_ranks(size, [&](nn::Communicator& ranks) {
        Trained run(20);
        EvaluationOptions spread = options;
        spread.ranks = &ranks;
        const tasks::Tally tally = evaluate(run.model, *run.task, spread);
        LONGHAND_CHECK(tally.metrics().size() == alone.metrics().size(), "other metrics");
        for (std::size_t i = 0; i < alone.metrics().size(); ++i) {
          const tasks::Metric &mine = tally.metrics()[i], &expected = alone.metrics()[i];
          LONGHAND_CHECK(mine.name == expected.name && mine.sum == expected.sum &&
                             mine.count == expected.count,
                         mine.name, ": expected ", expected.sum, ", got ", mine.sum);
        }
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(all_ranks_abandon_an_evaluation_when_one_is_interrupted) {
  std::atomic<int> left{0};
  nn::run_ranks(4, [&](nn::Communicator& ranks) {
    Trained run(0);
    const nn::Interruptible asked(*run.backend, [&] { return ranks.rank() == 2; });
    try {
      evaluate(run.model, *run.task,
               {.samples = 30, .tokens_at_once = 60, .seed = 3, .ranks = &ranks});
    } catch (const nn::Interrupted&) {
      ++left;
    }
  });
  BOOST_TEST(left.load() == 4);
}

BOOST_AUTO_TEST_SUITE_END()
