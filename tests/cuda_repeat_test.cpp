#include <cmath>
#include <limits>
#include <set>
#include "tests/check.h"

#include "core/contract/combine.h"
#include "core/contract/elementwise.h"
#include "core/error.h"
#include "cuda/emulator/backend.h"
#include "nn/layers/dropout.h"
#include "nn/losses.h"
#include "nn/models/decoder.h"
#include "nn/training/trainer.h"
#include "tests/refusal.h"
#include "tests/training.h"

// The emulated device delays its work as long as a real device might, so that a missing wait is
// detected.
BOOST_FIXTURE_TEST_SUITE(cuda_repeat_test, longhand::emulator::DeferredWork)

using namespace longhand;
using namespace longhand::nn;

// Compares recorded training steps with the same steps executed one operation at a time, on this
// machine's device if there is one, otherwise on the emulated device.

namespace {

using MakeBackend = std::shared_ptr<Backend> (*)(BackendOptions);

/// Returns a list with one function, which makes a backend of this machine's device or, if there is
/// none, of the emulated device.
std::vector<MakeBackend> devices() {
  try {
    make_cuda_backend();
    return {make_cuda_backend};
  } catch (const Error&) {  // there is no device; cuda_test reports the reason
    return {make_emulated_cuda_backend};
  }
}

/// Returns a batch of sequences with these lengths. The tokens are random and depend on the step.
Batch batch_of(std::int64_t step, std::vector<std::int32_t> lengths) {
  Rng rng(3, Purpose::data, static_cast<std::uint64_t>(step));
  Batch batch{.lengths = std::move(lengths)};
  for (const std::int32_t length : batch.lengths) {
    for (std::int32_t i = 0; i < length; ++i) {
      batch.targets.push_back(i == 0 ? -1 : batch.tokens.back());
      batch.tokens.push_back(static_cast<std::int32_t>(rng.below(7)));
      batch.weights.push_back(rng.chance(0.2) ? 2.0f : 1.0f);
    }
  }
  return batch;
}

/// Batches whose shapes appear, disappear and reappear.
Batch of_several_shapes(std::int64_t step, std::int64_t) {
  switch (step % 9 / 3) {
    case 0:
      return batch_of(step, {6, 6});
    case 1:
      return batch_of(step, {9, 9, 9});
    default:
      return batch_of(step, {5});
  }
}

DecoderConfig config(std::string_view mixers = "softmax:1x4,fal:1x4,chacal:1x4") {
  return {.vocabulary = 7,
          .width = 8,
          .layers = 1,
          .mixers = parse_layers(mixers, 8),
          .inner = 12,
          .deviation = 0.3};
}

struct Trained {
  // Five numbers from each report: loss, accuracy, gradient norm, number of tokens, and number of
  // (query, key) pairs that attention computes (StepReport::pairs).
  std::vector<double> numbers;
  std::vector<std::vector<double>> values;
  std::vector<std::int64_t> steps;
  std::string error;
  MemoryUse memory;
};

Trained train(MakeBackend make, const BatchSource& source, TrainerOptions options,
              Math math = Math::fast, const DecoderConfig& form = config()) {
  const auto backend = make({.math = math});
  Decoder decoder(*backend, form, 2);
  Trained got;
  options.schedule = {.peak = 1e-2, .warm_up = 2, .steps = options.steps};
  options.optimizer = AdamOptions{.decay = 0.1, .clip = 1};
  const TrainerHooks hooks{.report = [&](const StepReport& r) {
    got.steps.push_back(r.step);
    for (const double number :
         {r.loss, r.accuracy.value(), r.gradient_norm, static_cast<double>(r.tokens), r.pairs}) {
      got.numbers.push_back(number);
    }
  }};
  got.error = refusal([&] { Trainer(decoder, source, options, hooks).run(); });
  got.values = values_of(decoder);
  got.memory = backend->memory().use();
  return got;
}

/// A model with float inputs and dropout.
class Thinned final : public Model {
 public:
  explicit Thinned(Backend& backend) : Model(backend, 4) {}
  nn::Loss loss(const PlacedBatch& batch) override {
    return squared_error(out_(drop_(in_(batch.features, {.f = Activation::tanh}))), batch);
  }

 private:
  Linear in_{scope() / "in", 3, 16};
  nn::Dropout drop_{scope(), 0.5};
  Linear out_{scope() / "out", 16, 1};
};

// A value of TrainerOptions::together, the number of seconds after which the trainer reads the
// results of the steps. It is so large that the trainer defers reading for as many repeated steps
// as possible.
constexpr double always = 1e9;

}  // namespace

BOOST_AUTO_TEST_CASE(repeated_steps_have_the_same_bits_as_unrecorded_steps) {
  for (const MakeBackend make : devices()) {
    for (const Math math : {Math::fast, Math::bf16}) {
      const Trained run = train(make, of_several_shapes, {.steps = 14, .recorded = 0}, math);
      const Trained all = train(make, of_several_shapes, {.steps = 14, .together = always}, math);
      const Trained few =
          train(make, of_several_shapes, {.steps = 14, .recorded = 2, .together = 0}, math);
      BOOST_TEST(run.error == "accepted");
      BOOST_TEST(run.steps.size() == 14u);
      for (const Trained* repeated : {&all, &few}) {
        BOOST_TEST(repeated->error == "accepted");
        BOOST_TEST(repeated->steps == run.steps);
        BOOST_TEST(repeated->numbers == run.numbers);
        BOOST_TEST(repeated->values == run.values);
        BOOST_TEST(repeated->memory.live == run.memory.live);  // memory of recordings is released
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(repeated_steps_of_every_mixer_have_the_same_bits) {
  for (const MakeBackend make : devices()) {
    for (const MixerKind* const kind : mixer_kinds()) {
      BOOST_TEST_CONTEXT(kind->name) {
        const DecoderConfig form = config(text(kind->name, ":2x4"));
        const auto source = [](std::int64_t step, std::int64_t) { return batch_of(step, {6, 6}); };
        const Trained run = train(make, source, {.steps = 4, .recorded = 0}, Math::fast, form);
        const Trained repeated =
            train(make, source, {.steps = 4, .together = always}, Math::fast, form);
        BOOST_TEST(repeated.error == "accepted");
        BOOST_TEST(repeated.numbers == run.numbers);
        BOOST_TEST(repeated.values == run.values);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(parts_are_repeated_together) {
  for (const MakeBackend make : devices()) {
    const auto source = [](std::int64_t step, std::int64_t part) {
      Batch batch = batch_of(10 * step + part, part == 0 ? std::vector{6, 6} : std::vector{9});
      // In step 5, the second batch has no scored targets. It then counts as a batch of another
      // shape.
      if (step == 5 && part == 1) batch.targets.assign(batch.targets.size(), -1);
      return batch;
    };
    const Trained run = train(make, source, {.steps = 7, .accumulation = 2, .recorded = 0});
    const Trained repeated =
        train(make, source, {.steps = 7, .accumulation = 2, .together = always});
    BOOST_TEST(run.error == "accepted");
    BOOST_TEST(repeated.numbers == run.numbers);
    BOOST_TEST(repeated.values == run.values);
  }
}

BOOST_AUTO_TEST_CASE(a_repeated_step_draws_new_random_numbers) {
  const BatchSource source = [](std::int64_t, std::int64_t part) {
    // The random numbers depend only on `part`, the index of a batch within its step. They do not
    // depend on the step, so every step has the same batches.
    Rng rng(6, Purpose::data, 0, static_cast<std::uint32_t>(part));
    Batch batch{.features = {{8, 3}}, .values = {{8, 1}}};
    for (int i = 0; i < 24; ++i) batch.features.values.push_back(rng.normal());
    for (int i = 0; i < 8; ++i) batch.values.values.push_back(rng.normal());
    return batch;
  };
  const auto losses = [&](const std::shared_ptr<Backend>& backend, double rate,
                          std::size_t recorded) {
    Thinned model(*backend);
    return train_losses(model, source,
                        {.steps = 6,
                         .accumulation = 2,
                         .schedule = {.curve = Schedule::Curve::constant, .peak = rate},
                         .optimizer = SgdOptions{.clip = 1},
                         .groups = {{.parameters = model.parameters().under("in"), .rate = 0.5}},
                         .recorded = recorded,
                         .together = always});
  };
  const BackendOptions exact{.math = Math::exact};
  for (const MakeBackend make : devices()) {
    BOOST_TEST(losses(make(exact), 0.1, 16) == losses(make(exact), 0.1, 0));
    // With learning rate 0, only the random numbers of dropout make the losses differ.
    const auto still = losses(make(exact), 0, 16);
    BOOST_TEST(std::set(still.begin(), still.end()).size() == 6u);
    // The CPU backend draws the same random numbers as the CUDA backend, so the losses agree.
    const auto host = losses(make_cpu_backend(exact), 0, 0);
    for (std::size_t i = 0; i < host.size(); ++i) {
      BOOST_TEST(std::abs(host[i] - still[i]) < 1e-5 * host[i]);
    }
  }
}

BOOST_AUTO_TEST_CASE(padding_ragged_batches_changes_no_result) {
  for (const MakeBackend make : devices()) {
    const auto ragged = [](std::int64_t step, std::int64_t) {
      const auto more = static_cast<std::int32_t>(step % 4);
      return batch_of(step, {5, 11 + more, 9});
    };
    const auto filled = [&](std::int64_t step, std::int64_t part) {
      return filled_up(ragged(step, part));
    };
    const Trained run = train(make, ragged, {.steps = 4, .recorded = 0}, Math::exact);
    const Trained full = train(make, filled, {.steps = 4, .recorded = 0}, Math::exact);
    const Trained repeated = train(make, ragged, {.steps = 4, .together = always}, Math::exact);
    BOOST_TEST(repeated.error == "accepted");
    BOOST_TEST(repeated.values == full.values);  // recording pads batches as filled_up() does
    BOOST_REQUIRE(repeated.numbers.size() == run.numbers.size());
    for (std::size_t i = 0; i < run.numbers.size(); ++i) {
      BOOST_TEST(std::abs(repeated.numbers[i] - run.numbers[i]) <
                 1e-4 * (1 + std::abs(run.numbers[i])));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_non_finite_loss_is_found_late_but_changes_nothing) {
  for (const MakeBackend make : devices()) {
    const auto source = [](std::int64_t step, std::int64_t) {
      Batch batch = batch_of(step, {6, 6});
      if (step == 8) batch.weights[1] = std::numeric_limits<float>::infinity();
      return batch;
    };
    const Trained seven = train(make, source, {.steps = 12, .recorded = 0});
    const Trained late = train(make, source, {.steps = 12, .together = always});
    BOOST_TEST(late.error.starts_with("step 8: loss "), late.error);
    BOOST_TEST(late.error == seven.error);
    BOOST_TEST(late.steps == std::vector<std::int64_t>({1, 2, 3, 4, 5, 6, 7}));
    BOOST_TEST(late.numbers == seven.numbers);
    BOOST_TEST(late.values == seven.values);
  }
}

BOOST_AUTO_TEST_CASE(earlier_steps_are_reported_before_the_model_is_read) {
  for (const MakeBackend make : devices()) {
    const auto backend = make({});
    Decoder decoder(*backend, config(), 2);
    std::int64_t reported = 0;
    std::vector<std::int64_t> evaluated, looked;
    Trainer(decoder,
            [](std::int64_t step, std::int64_t) {
              return batch_of(step, {6, 6});
            },
            {.steps = 14, .evaluate_every = 5, .look_every = 4, .together = always},
            {.report =
                 [&](const StepReport& r) {
                   BOOST_TEST(r.step == ++reported);
                   BOOST_TEST(r.seconds > 0);
                 },
             .evaluate =
                 [&](std::int64_t step) {
                   BOOST_TEST(reported == step);
                   evaluated.push_back(step);
                   return std::optional<double>();
                 },
             .stop =
                 [&] {
                   looked.push_back(reported);
                   return false;
                 }})
        .run();
    BOOST_TEST(evaluated == std::vector<std::int64_t>({5, 10, 14}));
    BOOST_TEST(looked == std::vector<std::int64_t>({1, 2, 2, 4, 5, 5, 5, 8, 8, 10, 10, 12, 12}));
  }
}

BOOST_AUTO_TEST_CASE(repeated_work_runs_its_body_twice_and_sees_new_contents) {
  for (const MakeBackend make : devices()) {
    const auto backend = make({});
    const Tensor x(*backend, {3}, DType::f32), y(*backend, {3}, DType::f32);
    const auto repeat = backend->repeat();
    int runs = 0;
    std::size_t held = 0;
    for (int time = 0; time < 5; ++time) {
      x.assign(std::vector<double>{1.0 * time, 2, 3});
      const bool repeated = repeat->run([&] {
        ++runs;
        const Tensor twice = empty_like(x);
        (*backend)(Scale{.x = x, .alpha = 2, .y = twice});
        (*backend)(Combine{.a = twice, .b = x, .y = y});
      });
      BOOST_TEST(repeated == (time >= 2));
      BOOST_TEST(y.to_doubles() == std::vector<double>({3.0 * time, 6, 9}));
      // Recorded work never writes to the memory of other tensors.
      const Tensor other = Tensor::zeros(*backend, {3}, DType::f32);
      BOOST_TEST(other.to_doubles() == std::vector<double>(3, 0.0));
      const MemoryUse use = backend->memory().use();
      if (time == 0) held = use.live + use.cached;
      // After each repetition, the backend holds as much memory as after the first run.
      BOOST_TEST(use.live + use.cached == held);
    }
    BOOST_TEST(runs == 2);
  }
}

BOOST_AUTO_TEST_CASE(repeated_work_sees_other_lengths) {
  for (const MakeBackend make : devices()) {
    const auto backend = make({});
    const Tensor x(*backend, {110, 5}, DType::f32), y(*backend, {220, 5}, DType::f32);
    const std::int32_t even[] = {50, 60}, uneven[] = {108, 2}, begins[] = {0, 110};
    Segments from(*backend, even);
    const Segments to(*backend, begins, std::vector<std::int32_t>{110, 110});
    const auto repeat = backend->repeat();
    for (int time = 0; time < 4; ++time) {
      const std::span<const std::int32_t> lengths = time < 2 ? even : uneven;
      from.assign(lengths);
      std::vector<double> values(550), wanted(1100, 0.0);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<double>(i + 1);
        const std::size_t first = static_cast<std::size_t>(lengths[0]) * 5;
        // In y, each sequence has room for 110 rows of 5 entries. Append copies the sequence's rows
        // of x to the last of these 110 rows.
        wanted[i < first ? 550 - first + i : 550 + i] = values[i];
      }
      x.assign(values);
      const bool repeated = repeat->run([&] {
        (*backend)(Fill{.value = 0, .y = y});
        (*backend)(Append{{x, 0, 1, 5}, from, {y, 0, 1, 5}, to});
      });
      BOOST_TEST(repeated == (time >= 2));
      BOOST_TEST(y.to_doubles() == wanted);
    }
  }
}

BOOST_AUTO_TEST_CASE(work_that_cannot_be_repeated_is_refused_by_name) {
  for (const MakeBackend make : devices()) {
    const auto backend = make({});
    const Tensor x = Tensor::zeros(*backend, {2}, DType::f32);
    const auto told = [&](const std::function<void()>& body) {
      const auto repeat = backend->repeat();
      std::string error;
      for (int time = 0; time < 2; ++time) {
        error = refusal([&] { repeat->run(body); });
      }
      return error;
    };
    const std::string_view recorded = " is not possible while a CUDA graph is recorded";
    BOOST_TEST(told([&] { x.item(); }).ends_with("got shape [2]"));
    BOOST_TEST(told([&] { x.to_doubles(); }) == text("cuda: a download", recorded));
    BOOST_TEST(told([&] {
                 x.assign(std::vector<double>{1, 2});
               }) == text("cuda: an upload", recorded));
    BOOST_TEST(told([&] { backend->synchronize(); }) ==
               text("cuda: waiting for the device", recorded));
    Tensor kept;
    BOOST_TEST(told([&] { kept = empty_like(x); }) ==
               "cuda memory: 1 blocks that were allocated while work was recorded are still in use "
               "at the end of the recording; allocate such memory before the recording");
    BOOST_TEST(told([&] { (*backend)(Fill{.value = 1, .y = x}); }) == "accepted");
    BOOST_TEST(x.to_doubles() == std::vector<double>({1, 1}));
  }
}

BOOST_AUTO_TEST_SUITE_END()
