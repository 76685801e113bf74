#include <set>
#include "tests/check.h"

#include "core/error.h"
#include "cuda/emulator/backend.h"
#include "nn/mixers/softmax.h"
#include "nn/models/decode.h"
#include "tests/refusal.h"

// The emulated device delays its work as long as a real device might, so that a missing wait is
// detected.
BOOST_FIXTURE_TEST_SUITE(cuda_decode_test, longhand::emulator::DeferredWork)

using namespace longhand;
using namespace longhand::nn;

// Compares two ways of decoding: by recorded passes, which are repeated as CUDA graphs, and one
// operation at a time. Uses this machine's device if there is one, otherwise the emulated device.

namespace {

using Tokens = std::vector<std::int32_t>;
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

DecoderConfig config(std::string_view mixers) {
  return {.vocabulary = 9,
          .width = 16,
          .layers = 2,
          .mixers = parse_layers(mixers, 16),
          .inner = 24,
          .deviation = 0.7};
}

DecoderConfig llama() {
  DecoderConfig c = config("softmax:4/2");
  c.norm = NormKind::rms;
  c.order = Order::sequential;
  c.projection_bias = c.mixing_bias = c.feed_forward_bias = false;
  c.gated = true;
  c.activation = Activation::silu;
  c.tied = true;
  return c;
}

const std::vector<Tokens> prompts{{1, 2, 3}, {4}, {5, 6, 7, 8, 0, 1, 2, 3, 4, 5}, {8, 8}};

/// The generated tokens with their log probabilities, and the work that had been submitted to the
/// device when each token was known.
struct Said {
  std::vector<Tokens> answers;
  std::vector<double> log_probabilities;
  // One entry per token: the work that the host gave to the device after the previous token was
  // known and until this token was known.
  std::vector<GivenWork> given;
  std::string error;

  bool same(const Said& other) const {
    return answers == other.answers && log_probabilities == other.log_probabilities &&
           error == other.error;
  }
};

enum class Run { recorded, one_by_one };

Said say(MakeBackend make, const DecoderConfig& form, GenerateOptions options, Run how,
         BackendOptions of_backend = {}) {
  const auto backend = make(of_backend);
  Decoder decoder(*backend, form, 3);
  if (how == Run::one_by_one) backend->observer = [](std::string_view) {};
  Said said;
  options.said = [&](std::size_t, const Choice& choice) {
    said.log_probabilities.push_back(choice.log_probability);
    said.given.push_back(given_work());
    return true;
  };
  said.error = refusal([&] { said.answers = generate(decoder, prompts, options); });
  return said;
}

std::int64_t graphs(const Said& said) { return said.given.back().graphs - said.given[0].graphs; }

/// Options with maximum lengths that make the answers end at different times.
GenerateOptions ending_apart(std::int64_t most) { return {.most_each = {most, most / 4, most, 2}}; }

}  // namespace

BOOST_AUTO_TEST_CASE(recorded_decoding_has_the_same_bits_as_unrecorded_decoding) {
  const std::vector<DecoderConfig> forms{llama(), config("softmax:2x4,fal:2x4"),
                                         config("chacal:2x8")};
  for (const MakeBackend make : devices()) {
    for (const DecoderConfig& form : forms) {
      for (const Math math : {Math::fast, Math::bf16}) {
        GenerateOptions options = ending_apart(28);
        for (const bool probabilities : {false, true}) {
          options.probabilities = probabilities;
          const Said recorded = say(make, form, options, Run::recorded, {.math = math});
          const Said run = say(make, form, options, Run::one_by_one, {.math = math});
          BOOST_TEST(recorded.error == "accepted");
          BOOST_TEST(recorded.same(run));
          std::set<std::int32_t> words(run.answers[0].begin(), run.answers[0].end());
          // If the model always predicted the same token, the test would prove little.
          BOOST_TEST(words.size() > 2u);
          if (make == make_emulated_cuda_backend) {
            BOOST_TEST(graphs(recorded) > 15);
            BOOST_TEST(graphs(run) == 0);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_mixer_can_be_recorded_or_reports_that_it_cannot) {
  for (const MakeBackend make : devices()) {
    for (const MixerKind* const kind : mixer_kinds()) {
      BOOST_TEST_CONTEXT(kind->name) {
        const DecoderConfig form = config(text(kind->name, ":2x8"));
        const GenerateOptions options{.most_each = {22, 7, 22, 2}, .probabilities = true};
        const Said recorded = say(make, form, options, Run::recorded);
        const Said run = say(make, form, options, Run::one_by_one);
        BOOST_TEST(recorded.error == "accepted");
        BOOST_TEST(recorded.same(run));
        if (make == make_emulated_cuda_backend) {
          BOOST_TEST((graphs(recorded) > 0) == kind->make()->repeats());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(mixers_with_options_can_be_recorded) {
  DecoderConfig learned = config("softmax:2x8"), sinusoidal = learned;
  learned.positions = Positions::learned;
  sinusoidal.positions = Positions::sinusoidal;
  for (const DecoderConfig& form :
       {config("softmax:2x8{window=5,temper=position}"), config("softmax:2x8{head_norm=rms}"),
        config("chacal:2x8{learned_gamma=head,temper=position}"), learned, sinusoidal}) {
    const Said recorded = say(make_emulated_cuda_backend, form, ending_apart(24), Run::recorded);
    const Said run = say(make_emulated_cuda_backend, form, ending_apart(24), Run::one_by_one);
    BOOST_TEST(recorded.error == "accepted");
    BOOST_TEST(recorded.same(run));
    BOOST_TEST(graphs(recorded) > 10);
  }
}

// A decoding pass is recorded after its shape has occurred a few times. From then on, each token
// needs one graph and four copies: three uploads (input tokens, their positions, lengths of the
// sequences) and a download (chosen tokens).
BOOST_AUTO_TEST_CASE(decoding_a_token_launches_one_graph_and_few_copies) {
  for (const bool probabilities : {false, true}) {
    const Said said = say(make_emulated_cuda_backend, llama(),
                          {.most = 30, .probabilities = probabilities}, Run::recorded);
    const std::size_t all = prompts.size();
    BOOST_REQUIRE(said.given.size() == 30 * all);
    for (std::size_t token = 6; token < 30; ++token) {
      const GivenWork &before = said.given[(token - 1) * all], &after = said.given[token * all];
      BOOST_TEST(after.graphs - before.graphs == 1);
      BOOST_TEST(after.single - before.single == 4);
    }
  }
}

BOOST_AUTO_TEST_CASE(sampled_text_is_the_same_with_recording) {
  const GenerateOptions options{
      .most = 24, .sampling = {.repetition_penalty = 1.1, .temperature = 1}, .seed = 5};
  for (const MakeBackend make : devices()) {
    const Said recorded = say(make, llama(), options, Run::recorded);
    BOOST_TEST(recorded.same(say(make, llama(), options, Run::one_by_one)));
  }
}

BOOST_AUTO_TEST_CASE(recordings_do_not_outlive_the_tables_they_read) {
  DecoderConfig small = llama();
  small.longest = 4;
  const GenerateOptions options{.most = 40, .probabilities = true};
  for (const MakeBackend make : devices()) {
    const Said grown = say(make, small, options, Run::recorded);
    BOOST_TEST(grown.same(say(make, small, options, Run::one_by_one)));
    BOOST_TEST(grown.same(say(make, llama(), options, Run::recorded)));
  }
}

BOOST_AUTO_TEST_CASE(recorded_decoding_also_refuses_sequences_that_are_too_long) {
  DecoderConfig form = llama();
  form.positions = Positions::learned;
  form.longest = 30;
  for (const MakeBackend make : devices()) {
    const Said recorded = say(make, form, {.most = 40}, Run::recorded);
    BOOST_TEST(recorded.error.starts_with("model: expected sequences of at most 30 tokens"));
    BOOST_TEST(recorded.same(say(make, form, {.most = 40}, Run::one_by_one)));
  }
}

BOOST_AUTO_TEST_CASE(predictions_at_scored_positions_are_the_same_with_recording) {
  // Requests predictions at all positions from the seventh on. In the longest sequence (i = 0),
  // also requests predictions at some earlier positions.
  std::vector<Tokens> sequences(3), asked(3);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto length = static_cast<std::int32_t>(30 - 4 * i);
    for (std::int32_t t = 0; t < length; ++t) {
      sequences[i].push_back((3 * t + static_cast<std::int32_t>(i)) % 9);
      if (t >= 6 || (i == 0 && t % 3 == 1)) asked[i].push_back(t);
    }
  }
  std::vector<std::vector<ReferencePair>> reference(3);
  for (std::int32_t t = 0; t < 30; ++t) reference[0].push_back({t, t / 2});
  for (const MakeBackend make : devices()) {
    const auto decode = [&](const DecoderConfig& form, bool with_reference, Run how) {
      const auto backend = make({});
      Decoder decoder(*backend, form, 3);
      for (const std::int64_t layer : {0, 1}) {
        const Parameter& amounts = decoder.block(layer).mixer<SoftmaxHeads>().reinforcement();
        if (amounts) amounts.value().assign(std::vector<double>{2, 1});
      }
      if (how == Run::one_by_one) backend->observer = [](std::string_view) {};
      const GivenWork before = given_work();
      const auto said =
          decode_asked(decoder, sequences, asked, 0,
                       with_reference ? reference : std::vector<std::vector<ReferencePair>>());
      if (make == make_emulated_cuda_backend) {
        BOOST_TEST((given_work().graphs > before.graphs + 10) == (how == Run::recorded));
      }
      return said;
    };
    const DecoderConfig plain = config("softmax:2x4,fal:2x4");
    const DecoderConfig told = config("softmax:2x8{reinforce=0.1}");
    BOOST_TEST(decode(plain, false, Run::recorded) == decode(plain, false, Run::one_by_one));
    const auto with = decode(told, true, Run::recorded);
    BOOST_TEST(with == decode(told, true, Run::one_by_one));
    BOOST_TEST(with != decode(told, false, Run::recorded));
  }
}

BOOST_AUTO_TEST_CASE(memory_of_recordings_is_released) {
  for (const MakeBackend make : devices()) {
    const auto backend = make({});
    Decoder decoder(*backend, llama(), 3);
    generate(decoder, prompts, {.most = 12});
    const MemoryUse before = backend->memory().use();
    generate(decoder, prompts, {.most = 12});
    BOOST_TEST(backend->memory().use().live == before.live);
    BOOST_TEST(backend->memory().use().cached == before.cached);
  }
}

BOOST_AUTO_TEST_SUITE_END()
