#include "nn/training/trainer.h"
#include "nn/training/stop_signals.h"

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include "tests/check.h"

#include "core/contract/elementwise.h"
#include "core/error.h"
#include "nn/layers/embedding.h"
#include "nn/layers/linear.h"
#include "nn/losses.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "tests/training.h"

BOOST_AUTO_TEST_SUITE(trainer_test)

using namespace longhand;
using namespace longhand::nn;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t vocabulary = 7;

/// Predicts the next token from the current token only.
class Bigrams final : public Model {
 public:
  explicit Bigrams(Backend& backend, std::int64_t width = 16)
      : Model(backend, 5),
        in_(scope() / "in", vocabulary, width, normal(0.5)),
        inner_(scope() / "inner", width, 2 * width, true, normal(0.2)),
        out_(scope() / "out", 2 * width, vocabulary, true, normal(0.2)) {}

  Loss loss(const PlacedBatch& batch) override {
    const Var x = in_(batch.input.ids, DType::f32);
    const Var h = inner_(x, {.f = Activation::gelu});
    if (watch) watch("h", h.value());
    return cross_entropy(out_(h), batch, {.consume_logits = true});
  }

 private:
  nn::Embedding in_;
  Linear inner_, out_;
};

/// Rows of random tokens. The target of a token x is 3 x + 1 mod 7. A few targets are not scored,
/// and a few have double weight.
Batch batch_of(std::int64_t step, std::int64_t part, int rows = 30) {
  Rng rng(3, Purpose::data, static_cast<std::uint64_t>(step), static_cast<std::uint32_t>(part));
  Batch batch;
  batch.lengths = {rows};
  for (int i = 0; i < rows; ++i) {
    const auto token = static_cast<std::int32_t>(rng.below(vocabulary));
    batch.tokens.push_back(token);
    batch.targets.push_back(rng.chance(0.2) ? -1 : (3 * token + 1) % 7);
    batch.weights.push_back(rng.chance(0.1) ? 2.0f : 1.0f);
  }
  return batch;
}

TrainerOptions options(std::int64_t steps) {
  return {.steps = steps,
          .schedule = {.peak = 1e-2, .warm_up = 5, .steps = 60},
          .optimizer = AdamOptions{.decay = 0.01, .clip = 1}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(training_lowers_the_loss_and_reports_every_step) {
  const auto backend = make_cpu_backend({.threads = 2});
  Bigrams model(*backend);
  std::vector<StepReport> reports;
  Trainer trainer(model, [](auto step, auto part) { return batch_of(step, part); }, options(60),
                  {.report = [&](const StepReport& r) { reports.push_back(r); }});
  BOOST_TEST((trainer.run() == Outcome::finished));
  BOOST_REQUIRE(reports.size() == 60u);
  BOOST_TEST(reports.front().loss > 1.5);
  BOOST_TEST(reports.back().loss < 0.1);
  BOOST_TEST(reports.back().accuracy.value() == 1.0);
  BOOST_TEST(reports.back().tokens == 30);
  BOOST_TEST(reports[5].rate == 1e-2);
  BOOST_TEST(reports.back().memory.peak > 0u);
  BOOST_TEST(reports.back().memory.live == reports[10].memory.live);  // memory does not accumulate
}

BOOST_AUTO_TEST_CASE(a_schedule_gets_its_number_of_steps_from_the_trainer) {
  const auto backend = make_cpu_backend({.threads = 1});
  Bigrams model(*backend);
  std::vector<double> rates;
  Trainer trainer(model, [](auto step, auto part) { return batch_of(step, part); },
                  {.steps = 4, .schedule = {.peak = 1}},
                  {.report = [&](const StepReport& r) { rates.push_back(r.rate); }});
  trainer.run();
  BOOST_TEST(rates == (std::vector<double>{1, 0.75, 0.5, 0.25}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_gradients_of_parts_add_up_to_that_of_the_batch) {
  // The mean over all targets is the same for three parts of 10 rows and for one part with the same
  // 30 rows.
  const auto backend = make_reference_backend();
  Bigrams whole(*backend), cut(*backend);
  const auto part_of = [](std::int64_t step, std::int64_t part) {
    return batch_of(step, part, 10);
  };
  const auto joined = [&](std::int64_t step, std::int64_t) {
    Batch all = part_of(step, 0);
    for (int part = 1; part < 3; ++part) {
      const Batch more = part_of(step, part);
      all.tokens.insert(all.tokens.end(), more.tokens.begin(), more.tokens.end());
      all.targets.insert(all.targets.end(), more.targets.begin(), more.targets.end());
      all.weights.insert(all.weights.end(), more.weights.begin(), more.weights.end());
    }
    all.lengths = {30};
    return all;
  };
  TrainerOptions in_parts = options(8);
  in_parts.accumulation = 3;
  const auto expected = train_losses(whole, joined, options(8));
  const auto got = train_losses(cut, part_of, in_parts);
  for (std::size_t i = 0; i < 8; ++i) {
    BOOST_TEST(expected[i] == got[i], boost::test_tools::tolerance(1e-5));
  }
}

BOOST_AUTO_TEST_CASE(a_resumed_run_has_the_same_bits_as_an_uninterrupted_one) {
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part); };
  const auto backend = make_cpu_backend({.threads = 1});
  Bigrams whole(*backend);
  const std::vector<double> whole_losses = train_losses(whole, source, options(40));

  const TemporaryFolder folder;
  std::vector<double> cut_losses;
  TrainerOptions cut_options = options(40);
  cut_options.checkpoints.folder = folder.path();
  const TrainerHooks hooks{.report = [&](const StepReport& r) { cut_losses.push_back(r.loss); },
                           .stop = [&] { return cut_losses.size() == 17; }};
  {
    Bigrams first(*backend);
    Trainer trainer(first, source, cut_options, hooks);
    BOOST_TEST(!trainer.resume_latest());
    BOOST_TEST((trainer.run() == Outcome::stopped));
  }
  const auto other = make_cpu_backend({.threads = 3});
  Bigrams second(*other);
  Trainer trainer(second, source, cut_options, hooks);
  BOOST_TEST(trainer.resume_latest());
  BOOST_TEST(trainer.step() == 17);
  BOOST_TEST((trainer.run() == Outcome::finished));
  BOOST_TEST(whole_losses == cut_losses);
  BOOST_CHECK(values_of(whole) == values_of(second));
}

BOOST_AUTO_TEST_CASE(an_optimizer_without_state_is_saved_with_its_name_and_resumed) {
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part); };
  const auto backend = make_cpu_backend({.threads = 1});
  const TemporaryFolder folder;
  TrainerOptions own = options(6);
  own.optimizer = Descent::make;
  Bigrams whole(*backend), cut(*backend), resumed(*backend);
  train_losses(whole, source, own);
  own.checkpoints.folder = folder.path();
  own.steps = 4;
  train_losses(cut, source, own);
  BOOST_CHECK(values_of(cut) != values_of(whole));
  BOOST_TEST(check_checkpoint(folder / "step-4").optimizer);

  own.steps = 6;
  Trainer trainer(resumed, source, own);
  BOOST_TEST(trainer.resume_latest());
  BOOST_TEST(trainer.step() == 4);
  trainer.run();
  BOOST_CHECK(values_of(resumed) == values_of(whole));
  own.optimizer = AdamOptions{};
  Trainer other(resumed, source, own);
  expect_refusal([&] { other.resume(folder / "step-6"); },
                 "expected the state of the optimizer adam, got the state of descent");
}

BOOST_AUTO_TEST_CASE(the_latest_checkpoints_and_the_best_are_kept) {
  const auto backend = make_cpu_backend({.threads = 1});
  Bigrams model(*backend);
  const TemporaryFolder folder;
  TrainerOptions o = options(30);
  o.checkpoints.folder = folder.path();
  o.checkpoint_every = 5;
  o.evaluate_every = 4;
  o.checkpoints.keep = 2;
  o.checkpoints.metadata = {{"who", "test"}};
  std::vector<std::int64_t> evaluated;
  Trainer trainer(model, [](auto step, auto part) { return batch_of(step, part); }, o,
                  {.evaluate = [&](std::int64_t step) {
                    evaluated.push_back(step);
                    return std::optional<double>(step == 8 ? 1.0 : 0.5);
                  }});
  trainer.run();
  BOOST_TEST(evaluated == std::vector<std::int64_t>({4, 8, 12, 16, 20, 24, 28, 30}));
  const CheckpointStore store(folder.path(), 2);
  // A checkpoint is written before each evaluation. The store keeps the best checkpoint and the
  // last two.
  BOOST_TEST(store.steps() == std::vector<std::int64_t>({8, 28, 30}));
  BOOST_TEST(store.best().value() == 8);
  const CheckpointInfo info = read_checkpoint_info(store.path(8));
  BOOST_TEST(info.score.value() == 1.0);
  BOOST_TEST(info.more.at("who") == "test");
}

BOOST_AUTO_TEST_CASE(a_score_of_nan_is_the_worst_and_a_damaged_best_file_is_rewritten) {
  const auto backend = make_cpu_backend({.threads = 1});
  const TemporaryFolder folder;
  TrainerOptions o = options(30);
  o.checkpoints.folder = folder.path();
  o.evaluate_every = 10;
  const TrainerHooks hooks{.evaluate = [&](std::int64_t step) {
    return std::optional(step == 20 ? 0.5 : std::numeric_limits<double>::quiet_NaN());
  }};
  const auto source = [](auto step, auto part) { return batch_of(step, part); };
  Bigrams model(*backend);
  Trainer(model, source, o, hooks).run();
  const CheckpointStore store(folder.path(), 2);
  BOOST_TEST(store.best().value() == 20);
  BOOST_TEST(read_checkpoint_info(store.path(30)).score.value() ==
             -std::numeric_limits<double>::infinity());
  for (const char* damage : {"step-30\n", "step-7\n", "x"}) {
    std::ofstream(folder / "best") << damage;
    Bigrams again(*backend);
    Trainer second(again, source, o, hooks);
    BOOST_TEST(second.resume_latest());
    BOOST_TEST(store.best().value() == 20);
  }
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_not_finite_stops_and_names_step_and_tensor) {
  const auto backend = make_cpu_backend({.threads = 1});
  Bigrams model(*backend);
  const TemporaryFolder folder;
  TrainerOptions o = options(20);
  o.checkpoints.folder = folder.path();
  o.checkpoint_every = 5;
  const auto source = [](std::int64_t step, std::int64_t part) {
    Batch batch = batch_of(step, part);
    if (step == 8) batch.weights[0] = std::numeric_limits<float>::infinity();
    return batch;
  };
  std::vector<std::vector<double>> after_seven;
  Trainer trainer(model, source, o,
                  {.report = [&](const StepReport&) { after_seven = values_of(model); }});
  const std::string message = refusal([&] { trainer.run(); });
  BOOST_TEST(message.starts_with("step 8: loss"), message);
  BOOST_TEST(contains(message, "first tensor that is not finite: gradient of in.weight"));
  BOOST_TEST(message.ends_with("the checkpoint of step 5 is kept"), message);
  BOOST_CHECK(values_of(model) == after_seven);
  BOOST_TEST(CheckpointStore(folder.path(), 2).latest().value() == 5);
}

BOOST_AUTO_TEST_CASE(checkpoints_by_time_follow_every_step_that_takes_longer) {
  const auto backend = make_cpu_backend({.threads = 1});
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part); };
  using Steps = std::vector<std::int64_t>;
  const auto saved_with = [&](double seconds) {
    const TemporaryFolder folder;
    TrainerOptions o = options(5);
    o.checkpoints.folder = folder.path();
    o.checkpoint_seconds = seconds;
    Bigrams model(*backend);
    Steps saved;
    Trainer(model, source, o, {.saved = [&](std::int64_t step, auto&) { saved.push_back(step); }})
        .run();
    return saved;
  };
  BOOST_TEST(saved_with(1e-9) == Steps({1, 2, 3, 4, 5}));
  BOOST_TEST(saved_with(3600) == Steps({5}));
  BOOST_TEST(saved_with(0) == Steps({5}));
}

BOOST_AUTO_TEST_CASE(evaluations_by_time_follow_every_step_that_takes_longer) {
  const auto backend = make_cpu_backend({.threads = 1});
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part); };
  using Steps = std::vector<std::int64_t>;
  const auto run_with = [&](double seconds, Steps& scored) {
    const TemporaryFolder folder;
    TrainerOptions o = options(5);
    o.checkpoints = {.folder = folder.path(), .keep = 5};
    o.evaluate_seconds = seconds;
    Bigrams model(*backend);
    Trainer(model, source, o,
            {.evaluate =
                 [&](std::int64_t step) {
                   scored.push_back(step);
                   return static_cast<double>(step == 3);
                 }})
        .run();
    const CheckpointStore store(folder.path(), 5);
    BOOST_TEST(store.steps() == scored);  // each evaluation has a checkpoint
    BOOST_TEST(store.best().value() == (seconds < 1 && seconds > 0 ? 3 : 5));
    return values_of(model);
  };
  Steps often, seldom, never;
  const auto values = run_with(1e-9, often);
  BOOST_TEST(often == Steps({1, 2, 3, 4, 5}));
  BOOST_CHECK(run_with(3600, seldom) == values);
  BOOST_TEST(seldom == Steps({5}));
  BOOST_CHECK(run_with(0, never) == values);
  BOOST_TEST(never == Steps({5}));
}

BOOST_AUTO_TEST_CASE(a_parameter_that_is_not_finite_is_named) {
  const auto backend = make_cpu_backend({.threads = 1});
  Bigrams model(*backend);
  const Parameter& bias = *model.parameters().find("inner.bias");
  (*backend)(Fill{.value = std::numeric_limits<double>::quiet_NaN(), .y = bias.value()});
  Trainer trainer(
      model, [](auto step, auto part) { return batch_of(step, part); }, options(3));
  BOOST_TEST(contains(refusal([&] { trainer.run(); }), "inner.bias (32 of 32 entries)"));
}

BOOST_AUTO_TEST_CASE(an_error_from_the_batch_source_ends_the_run) {
  const auto backend = make_cpu_backend({.threads = 1});
  Bigrams model(*backend);
  const auto source = [](std::int64_t step, std::int64_t part) {
    if (step == 3) fail("no more data");
    return batch_of(step, part);
  };
  Trainer trainer(model, source, options(10));
  BOOST_TEST(refusal([&] { trainer.run(); }) == "no more data");
  BOOST_TEST(trainer.step() == 2);
}

BOOST_AUTO_TEST_CASE(a_step_without_a_counted_target_is_skipped_and_reported) {
  const auto backend = make_cpu_backend({.threads = 1});
  Bigrams model(*backend);
  const TemporaryFolder folder;
  TrainerOptions o = options(6);
  o.checkpoints.folder = folder.path();
  const auto source = [](std::int64_t step, std::int64_t part) {
    Batch batch = batch_of(step, part);
    if (step == 1 || step == 4 || step == 6) batch.targets.assign(batch.targets.size(), -1);
    return batch;
  };
  std::vector<std::int64_t> skipped, taken;
  std::vector<std::vector<double>> before = values_of(model);
  const TrainerHooks hooks{.report = [&](const StepReport& r) {
    (r.skipped ? skipped : taken).push_back(r.step);
    BOOST_TEST((values_of(model) == before) == r.skipped);
    before = values_of(model);
  }};
  Trainer trainer(model, source, o, hooks);
  BOOST_TEST((trainer.run() == Outcome::finished));
  BOOST_TEST(skipped == std::vector<std::int64_t>({1, 4, 6}));
  BOOST_TEST(taken == std::vector<std::int64_t>({2, 3, 5}));

  // A run that is stopped after step 3 and resumed gives the same parameters as an uninterrupted
  // run. Its first step after the checkpoint, step 4, is skipped.
  Bigrams again(*backend);
  o.checkpoints.folder = folder / "cut";
  skipped.clear();
  taken.clear();
  before = values_of(again);
  {
    Bigrams first(*backend);
    Trainer(first, source, o, {.stop = [count = 0]() mutable { return ++count == 3; }}).run();
  }
  Trainer second(again, source, o);
  BOOST_TEST(second.resume_latest());
  BOOST_TEST(second.step() == 3);
  second.run();
  BOOST_CHECK(values_of(again) == values_of(model));
}

BOOST_AUTO_TEST_CASE(weights_with_an_invalid_sum_are_refused) {
  const auto backend = make_cpu_backend({.threads = 1});
  for (const float weight : {-1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    Bigrams model(*backend);
    const auto source = [&](std::int64_t step, std::int64_t part) {
      Batch batch = batch_of(step, part);
      batch.weights.assign(batch.weights.size(), weight);
      return batch;
    };
    BOOST_CHECK_THROW(Trainer(model, source, options(2)).run(), Error);
  }
}

BOOST_AUTO_TEST_CASE(the_last_finished_step_is_saved_however_a_run_ends) {
  const auto backend = make_cpu_backend({.threads = 1});
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part); };
  const auto ends = [&](TrainerHooks hooks, const BatchSource& data, std::int64_t at) {
    const TemporaryFolder folder;
    TrainerOptions o = options(9);
    o.checkpoints.folder = folder.path();
    Bigrams model(*backend), whole(*backend);
    BOOST_CHECK_THROW(Trainer(model, data, o, std::move(hooks)).run(), Error);
    const CheckpointStore store(folder.path(), 1);
    BOOST_TEST(store.latest().value_or(-1) == at);
    // A second trainer resumes the run that ended with an error. The parameters must be those of a
    // run without an error.
    Trainer second(model, source, o);
    second.resume_latest();
    second.run();
    Trainer(whole, source, options(9)).run();
    BOOST_CHECK(values_of(model) == values_of(whole));
  };
  ends({.evaluate = [](auto) -> std::optional<double> { fail("cannot be scored"); }}, source, 9);
  ends({.report =
            [](const StepReport& r) {
              if (r.step == 4) fail("disk full");
            }},
       source, 4);
  ends(
      {},
      [&](auto step, auto part) {
        return step == 6 ? (fail("no data"), Batch{}) : source(step, part);
      },
      5);
}

BOOST_AUTO_TEST_CASE(an_abandoned_step_changes_nothing) {
  const auto backend = make_cpu_backend({.threads = 1});
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part); };
  Bigrams whole(*backend);
  Trainer(whole, source, options(6)).run();
  // The trainer calls `interrupt` before each operation of a step's gradients, so the test can
  // abandon a step at many places.
  int questions = 0;
  for (int leave = 1;; leave += 3) {
    const TemporaryFolder folder;
    TrainerOptions o = options(6);
    o.checkpoints.folder = folder.path();
    questions = 0;
    Bigrams model(*backend);
    Trainer trainer(model, source, o, {.interrupt = [&] { return ++questions == leave; }});
    const Outcome outcome = trainer.run();
    BOOST_TEST((outcome == Outcome::stopped) == (questions == leave));
    Bigrams other(*backend);
    Trainer second(other, source, o);
    BOOST_TEST(second.resume_latest());
    BOOST_TEST(second.step() == trainer.step());
    BOOST_CHECK(values_of(other) == values_of(model));
    second.run();
    BOOST_CHECK(values_of(other) == values_of(whole));
    if (outcome == Outcome::finished) break;
  }
  BOOST_TEST(questions > 50);
}

BOOST_AUTO_TEST_CASE(an_abandoned_evaluation_is_repeated_later) {
  const auto backend = make_cpu_backend({.threads = 1});
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part); };
  const TemporaryFolder folder;
  TrainerOptions o = options(6);
  o.checkpoints.folder = folder.path();
  o.evaluate_every = 3;
  Bigrams model(*backend);
  std::vector<std::int64_t> scored;
  bool leave = false;
  const TrainerHooks hooks{.evaluate = [&](std::int64_t step) -> std::optional<double> {
                             leave = scored.empty();
                             model.loss_of(batch_of(1, 0));
                             scored.push_back(step);
                             return 1.0;
                           },
                           .interrupt = [&] { return std::exchange(leave, false); }};
  scored = {};
  {
    Trainer first(model, source, o, hooks);
    BOOST_TEST((first.run() == Outcome::stopped));
    BOOST_TEST(first.step() == 3);
    BOOST_TEST(scored.empty());
  }
  scored = {0};  // the hook `evaluate` requests an interrupt only if `scored` is empty
  Trainer second(model, source, o, hooks);
  BOOST_TEST(second.resume_latest());
  BOOST_TEST(!second.evaluated());
  second.run();
  BOOST_TEST(scored == std::vector<std::int64_t>({0, 3, 6}));
  BOOST_TEST(CheckpointStore(folder.path(), 1).best().value() == 3);
}

BOOST_AUTO_TEST_CASE(a_signal_raises_the_flag) {
  // The default action is set because a test under nohup would ignore SIGHUP.
  const auto before = std::signal(SIGHUP, SIG_DFL);
  const StopSignals signals;
  BOOST_TEST(StopSignals::raised() == 0);
  for (const int signal : {SIGHUP, SIGTERM, SIGPIPE, SIGPIPE}) {
    std::raise(signal);
    BOOST_TEST(StopSignals::raised() == SIGHUP);  // raised() returns the first signal
  }
  { const StopSignals again; }
  BOOST_TEST(StopSignals::raised() == SIGHUP);
  StopSignals::forget();
  BOOST_TEST(StopSignals::raised() == 0);
  std::signal(SIGHUP, before);
}

BOOST_AUTO_TEST_CASE(an_ignored_signal_stays_ignored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    const StopSignals signals;
    std::raise(SIGHUP);
    BOOST_TEST(StopSignals::raised() == 0);
  }
  BOOST_TEST((std::signal(SIGHUP, SIG_DFL) == SIG_IGN));
}

BOOST_AUTO_TEST_SUITE_END()
