#include "autograd/recompute.h"

#include "tests/check.h"

#include "autograd/elementwise.h"
#include "nn/mixers/chacal.h"
#include "nn/mixers/fal.h"
#include "nn/mixers/softmax.h"
#include "nn/models/decoder.h"
#include "nn/training/parts.h"
#include "tests/recorded.h"

BOOST_AUTO_TEST_SUITE(recompute_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

struct Step {
  std::vector<double> loss;
  std::vector<std::vector<double>> gradients;
  std::int64_t peak;  // peak memory of the step, minus the memory in use before it
};

Step step(Backend& backend, DecoderConfig config, bool recompute, const std::string& train) {
  Decoder model(backend, std::move(config), 5);
  model.recompute = recompute;
  train_only(model.parameters(), find_parts(model.parameters(), train));
  Batch batch;
  Rng rng(7, Purpose::test);
  for (const int length : {40, 1, 90}) {
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < length; ++i) tokens.push_back(static_cast<std::int32_t>(rng.below(11)));
    batch.append(tokens, tokens);
  }
  backend.memory().reset_peak();
  const auto before = backend.memory().use().live;
  Tape tape;
  const Loss loss = recorded(tape, [&] { return model.loss_of(batch); });
  tape.backward(loss.value);
  Step result{.loss = loss.value.value().to_doubles(),
              .gradients = {},
              .peak = static_cast<std::int64_t>(backend.memory().use().peak - before)};
  for (const Parameter& p : model.parameters().all()) {
    const Tensor gradient = p.var().grad();
    result.gradients.push_back(gradient ? gradient.to_doubles() : std::vector<double>());
  }
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(recomputation_has_the_same_bits_and_uses_less_memory) {
  DecoderConfig parallel{.vocabulary = 11, .width = 32, .layers = 6, .mixers = {}, .inner = 96};
  parallel.mixers = {
      {heads_of<SoftmaxHeads>(1, 16), heads_of<FalHeads>(1, 8), heads_of<ChacalHeads>(1, 8)}};
  DecoderConfig sequential = parallel;
  sequential.order = Order::sequential;
  sequential.gated = true;
  sequential.activation = Activation::silu;
  sequential.lora = {.rank = 2, .targets = parse_lora_targets("query,gate,up,down")};
  for (const Math math : {Math::exact, Math::fast, Math::bf16}) {
    const auto backend = make_cpu_backend({.threads = 2, .math = math});
    for (const DecoderConfig& config : {parallel, sequential}) {
      // Trains all parameters, or only the blocks, or no parameter of the first blocks. If only the
      // blocks are trained, the first block's input requires no gradient.
      for (const std::string train : {"*", "blocks.*", "blocks.3.mixing.out,*.5.norm2.weight"}) {
        const Step kept = step(*backend, config, false, train);
        const Step again = step(*backend, config, true, train);
        BOOST_TEST_CONTEXT(name_of(math) << " " << train) {
          BOOST_TEST(kept.loss == again.loss);
          BOOST_TEST(kept.gradients.size() == again.gradients.size());
          for (std::size_t i = 0; i < kept.gradients.size(); ++i) {
            BOOST_TEST((kept.gradients[i] == again.gradients[i]));
          }
          if (train != "*") continue;
          BOOST_TEST(again.peak < 0.85 * static_cast<double>(kept.peak));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(values_without_gradients_are_not_recorded) {
  const auto backend = make_cpu_backend();
  const double numbers[] = {1, 2, 3};
  const Var x(Tensor::from(*backend, {3}, DType::f32, numbers), false);
  int calls = 0;
  const auto twice = [&](const Var& in) {
    ++calls;
    return scale(in, 2);
  };
  BOOST_TEST(recomputed(x, {}, twice).value().to_doubles() == (std::vector<double>{2, 4, 6}),
             boost::test_tools::per_element());
  Tape tape;
  const Recording recording(tape);
  BOOST_TEST(!recomputed(x, {}, twice).wants_grad());
  BOOST_TEST(tape.size() == 0u);
  BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_SUITE_END()
