#include "tests/cuda_parity.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include "tests/check.h"

#include "autograd/tolerance.h"
#include "nn/models/decoder.h"
#include "tests/recorded.h"
#include "tests/training.h"

namespace longhand::cuda_parity {
namespace {

struct Setting {
  DType activations;
  Math math;
};
constexpr Setting settings[] = {{DType::f32, Math::exact},
                                {DType::f32, Math::fast},
                                {DType::f32, Math::bf16},
                                {DType::bf16, Math::fast}};

void check_operation(const catalog::Operation& operation, Backend& reference,
                     const std::vector<std::shared_ptr<Backend>>& backends, Cases cases,
                     std::size_t turn, const std::function<void(std::size_t)>& before) {
  Rng rng(3, Purpose::test);
  tolerance::Standard standard(
      operation, cases == Cases::all ? all_cases(operation, rng) : operation.cases(rng), reference);
  for (std::size_t i = 0; i < std::size(settings); ++i) {
    const Setting& s = settings[i];
    if (before) before(turn + i);
    const tolerance::Worst worst = standard.compare(
        *backends[i], s.activations, tolerance::unit(operation, s.activations, s.math, true));
    BOOST_TEST_CONTEXT(operation.name << ", " << s.activations << ", " << name_of(s.math) << ": "
                                      << worst.where) {
      BOOST_TEST(worst.used <= 1.0);
    }
    if (std::getenv("LONGHAND_PARITY_TABLE") != nullptr) {
      std::printf("%-27s %-5s %-6s %.3f  %s\n", operation.name.c_str(),
                  std::string(name_of(s.activations)).c_str(), std::string(name_of(s.math)).c_str(),
                  worst.used, worst.where.c_str());
    }
  }
}

/// Models that together contain every kind of head and of position encoding.
std::vector<nn::DecoderConfig> models() {
  nn::DecoderConfig parallel{.vocabulary = 7,
                             .width = 16,
                             .layers = 2,
                             .mixers = nn::parse_layers("softmax:2x4,fal:1x8", 16),
                             .inner = 24,
                             .deviation = 0.3};
  nn::DecoderConfig sequential = parallel;
  sequential.mixers = nn::parse_layers(
      "softmax:2;softmax:1x4,chacal:3x4", 16,
      {{"gamma", "0.7"}, {"learned_gamma", "head"}, {"temper", "position"}, {"window", "4"}});
  sequential.order = nn::Order::sequential;
  sequential.activation = Activation::gelu_tanh;
  sequential.positions = nn::Positions::learned;
  sequential.longest = 32;
  sequential.tied = true;
  nn::DecoderConfig gated = parallel;
  gated.mixers = nn::parse_layers("softmax:4/2x4{window=3};softmax:4/2x4{rope_base=100}", 16);
  gated.norm = nn::NormKind::rms_plus_one;
  gated.order = nn::Order::sequential;
  gated.norms_after = gated.gated = true;
  gated.projection_bias = gated.mixing_bias = gated.feed_forward_bias = false;
  gated.embedding_scale = 4;
  nn::DecoderConfig scored = parallel;
  scored.mixers = nn::parse_layers(
      "ssmax:1x4,fox:2x4,sink:1x4{learned_sink=1};alibi:4/2x4,sink:1x8{sink=-1}", 16);
  nn::DecoderConfig ruled = parallel;
  ruled.mixers = nn::parse_layers(
      "stick:1x4,stick:1x4{forgets=1},tra:2/"
      "1x4;entmax:1x4{forgets=1},sigmoid:1x4,delta:1x4,lstm:1x4",
      16);
  return {parallel, sequential, gated, scored, ruled};
}

/// Sequences of random tokens with different lengths. The target of each token is the token before
/// it.
nn::Batch batch_of(std::int64_t step) {
  Rng rng(3, Purpose::data, static_cast<std::uint64_t>(step));
  nn::Batch batch;
  for (const int length : {5, 1, 12, 9}) {
    batch.lengths.push_back(length);
    for (int i = 0; i < length; ++i) {
      batch.targets.push_back(i == 0 ? -1 : batch.tokens.back());
      batch.tokens.push_back(static_cast<std::int32_t>(rng.below(7)));
    }
  }
  return batch;
}

struct Gradients {
  double loss;
  // The name and the gradient of each parameter.
  std::vector<std::pair<std::string, std::vector<double>>> of;
};

Gradients gradients(Backend& backend, const nn::DecoderConfig& config, DType type) {
  nn::Decoder decoder(backend, config, 2, {type});
  Tape tape;
  const nn::Loss loss = recorded(tape, [&] { return decoder.loss_of(batch_of(1)); });
  tape.backward(loss.value);
  Gradients all{loss.value.value().item(), {}};
  for (const nn::Parameter& p : decoder.parameters().all()) {
    all.of.emplace_back(p.name(), p.var().grad().to_doubles());
  }
  return all;
}

}  // namespace

void check_operations(const MakeBackend& make, Cases cases,
                      const std::function<void(std::size_t)>& before) {
  const auto reference = make_reference_backend();
  std::vector<std::shared_ptr<Backend>> backends;
  for (const Setting& s : settings) backends.push_back(make({.math = s.math}));
  const char* const chosen = std::getenv("LONGHAND_OPERATIONS");
  std::size_t turn = 0;
  for (const catalog::Operation& operation : catalog::operations()) {
    if (chosen && operation.name.find(chosen) == operation.name.npos) continue;
    check_operation(operation, *reference, backends, cases, turn++, before);
  }
}

void check_models(const MakeBackend& make) {
  const auto reference = make_reference_backend();
  const auto backend = make({.math = Math::exact});
  for (const nn::DecoderConfig& config : models()) {
    const Gradients expected = gradients(*reference, config, DType::f64);
    const Gradients got = gradients(*backend, config, DType::f32);
    BOOST_TEST(std::abs(got.loss - expected.loss) < 1e-5 * std::abs(expected.loss));
    BOOST_TEST_REQUIRE(got.of.size() == expected.of.size());
    for (std::size_t p = 0; p < expected.of.size(); ++p) {
      const auto& [name, y] = expected.of[p];
      double error = 0, size = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        error += std::pow(got.of[p].second[i] - y[i], 2);
        size += y[i] * y[i];
      }
      BOOST_TEST_CONTEXT(name) { BOOST_TEST(std::sqrt(error) <= 1e-4 * std::sqrt(size) + 1e-9); }
    }
  }
}

void check_training_repeats(const MakeBackend& make) {
  for (const Math math : {Math::fast, Math::bf16}) {
    for (const nn::DecoderConfig& config : models()) {
      const auto train = [&] {
        const auto backend = make({.math = math});
        nn::Decoder decoder(*backend, config, 2);
        const nn::TrainerOptions options{.steps = 4,
                                         .schedule = {.peak = 1e-2, .warm_up = 2, .steps = 4},
                                         .optimizer = nn::AdamOptions{.clip = 1},
                                         .recorded = 0};  // no recording: cuda_repeat_test tests it
        const auto source = [](std::int64_t step, std::int64_t) { return batch_of(step); };
        const std::vector<double> losses = train_losses(decoder, source, options);
        return std::pair(losses, values_of(decoder));
      };
      const auto first = train();
      BOOST_TEST(std::isfinite(first.first.front()));
      BOOST_CHECK(train() == first);
    }
  }
}

}  // namespace longhand::cuda_parity
