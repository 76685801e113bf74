#include "nn/models/decoder.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include "tests/check.h"

#include "autograd/rope.h"
#include "core/contract/rope.h"
#include "core/error.h"
#include "nn/losses.h"
#include "nn/mixers/softmax.h"
#include "nn/noise.h"
#include "tests/recorded.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "tests/training.h"

BOOST_AUTO_TEST_SUITE(decoder_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

using Tokens = std::vector<std::int32_t>;

DecoderConfig small() {
  return {.vocabulary = 7,
          .width = 16,
          .layers = 2,
          .mixers = parse_layers("softmax:2x4,fal:1x8", 16),
          .inner = 24,
          .deviation = 0.3};
}

using Change = std::function<void(DecoderConfig&)>;

Change set(std::string_view option, std::string_view value) {
  return [=](DecoderConfig& c) { set_option(c.mixers, option, value); };
}

Change heads(const char* text) {
  return [=](DecoderConfig& c) { c.mixers = parse_layers(text, 16); };
}

Change delta_rule(const char* text) {
  return [=](DecoderConfig& c) {
    heads(text)(c);
    // These mixers normalize vectors to a fixed length. With smaller initial parameters, the
    // vectors would be so short that difference quotients of the normalization would be inaccurate.
    c.deviation = 0.6;
  };
}

void chained(DecoderConfig& c) {
  c.mixers = parse_layers("softmax:2;softmax:1x4,chacal:3x4", 16);
  set("gamma", "0.7")(c);
}

/// Changes of the small test configuration small(), each with a name.
using Changes = std::vector<std::pair<std::string, Change>>;

/// Variants of the model's configuration. Each changes one or several options of the model.
Changes model_changes() {
  return {
      {"plain", [](DecoderConfig&) {}},
      {"sequential", [](DecoderConfig& c) { c.order = Order::sequential; }},
      {"no positions", [](DecoderConfig& c) { c.positions = Positions::none; }},
      {"learned positions", [](DecoderConfig& c) { c.positions = Positions::learned; }},
      {"sinusoidal positions", [](DecoderConfig& c) { c.positions = Positions::sinusoidal; }},
      {"tied", [](DecoderConfig& c) { c.tied = true; }},
      {"tanh GELU", [](DecoderConfig& c) { c.activation = Activation::gelu_tanh; }},
      {"RMS norms", [](DecoderConfig& c) { c.norm = NormKind::rms; }},
      {"a gate",
       [](DecoderConfig& c) {
         c.gated = true;
         c.activation = Activation::silu;
         c.feed_forward_bias = c.mixing_bias = false;
       }},
      {"with an output bias", [](DecoderConfig& c) { c.output_bias = true; }},
      {"scaled embeddings", [](DecoderConfig& c) { c.embedding_scale = 3; }},
      {"norms after, of one more than their weight",
       [](DecoderConfig& c) {
         c.order = Order::sequential;
         c.norm = NormKind::rms_plus_one;
         c.norms_after = true;
         c.mixers = parse_layers("softmax:4/1x6{window=2};softmax:4/1x6{rope_base=100}", 16);
         set("head_norm", "rms_plus_one")(c);
       }},
      {"GPT-2 with all of it",
       [](DecoderConfig& c) {
         chained(c);
         set("learned_gamma", "head")(c);
         c.order = Order::sequential;
         c.activation = Activation::gelu_tanh;
         c.positions = Positions::learned;
         c.longest = 32;
         c.tied = true;
         set("temper", "position")(c);
         set("window", "4")(c);
         c.start = Start::residual;
       }},
  };
}

/// Variants that change options of softmax heads.
Changes score_changes() {
  return {
      {"window", set("window", "3")},
      {"scale", set("score_scale", "1.5")},
      {"tempered",
       [](DecoderConfig& c) {
         set("temper", "position")(c);
         set("beta", "0.8")(c);
       }},
      {"tempered by length", set("temper", "length")},
      {"fewer keys", [](DecoderConfig& c) { c.mixers = parse_layers("softmax:4/2x4", 16); }},
      {"neighbours turn together", set("rope_interleaved", "1")},
      {"stretched wavelengths",
       [](DecoderConfig& c) {
         set("rope_factor", "4")(c);
         set("rope_original", "8")(c);
       }},
  };
}

/// Variants with other mechanisms than plain softmax attention.
Changes mechanism_changes() {
  return {
      {"ChaCAL", chained},
      {"gamma of layers",
       [](DecoderConfig& c) {
         chained(c);
         set("learned_gamma", "layer")(c);
       }},
      {"gamma of heads",
       [](DecoderConfig& c) {
         chained(c);
         set("learned_gamma", "head")(c);
       }},
      {"SSMax", heads("ssmax:2x4{ssmax=0.7},softmax:1x8")},
      {"forgetting", heads("fox:4/2x4")},
      {"forgetting little, turned", heads("fox:2x4{forget_bias=3,rope_in_fox=1},fal:1x8")},
      {"a delta rule", delta_rule("delta:4/2x4")},
      {"a delta rule without gates", delta_rule("delta:2x4{delta_gate=0,delta_negative=0},"
                                                "delta:1x8{delta_convolution=0}")},
      {"DeltaFormer",
       heads(
           "deltaformer:4/2x4;deltaformer:2x4{deltaformer_bias=1,rope_in_deltaformer=1},fal:1x8")},
      {"PaTH", delta_rule("path:2x4{path_rank=6},path:1x8{path_convolution=1}")},
      {"selective rotations",
       delta_rule("selective_rope:2x4{angle_rank=5},selective_rope:1x8{angle_gate=0}")},
      {"an LSTM", heads("lstm:2x5,lstm:1x6{lstm_forget=0}")},
      {"ALiBi", heads("alibi:3x4,softmax:1x4")},
      {"softmax1", heads("sink:4/2x4")},
      {"stick-breaking", heads("stick:2x4,stick:2/1x4{rope_in_stick=1}")},
      {"entmax", heads("entmax:4/2x4;entmax:2x4{entmax_scale=0,rope_in_entmax=1},fal:1x8")},
      {"threshold relative attention", heads("tra:4/2x4{tra_bias=1}")},
      {"other rules that forget",
       heads("stick:2x4{forgets=1},tra:2/1x4{forgets=1,forget_bias=3};"
             "entmax:2x4{forgets=1},stick:1x8{forgets=1,forget_bias=2}")},
      {"sigmoid attention", heads("sigmoid:4/2x4;sigmoid:2x4{forgets=1},fal:1x8")},
      {"learned sinks", heads("sink:2x4{sink=-0.5,learned_sink=1},sink:1x8{sink=1}")},
  };
}

/// Configurations in which each option is set alone, and others in which several are set together.
std::map<std::string, DecoderConfig> variants() {
  std::map<std::string, DecoderConfig> all;
  for (const Changes& changes : {model_changes(), score_changes(), mechanism_changes()}) {
    for (const auto& [name, change] : changes) change(all.emplace(name, small()).first->second);
  }
  return all;
}

/// Returns a batch in which each token is the sum of the two tokens before it, mod 7. The lengths
/// of the sequences vary.
Batch batch_of(std::int64_t step, std::int64_t part, int sequences = 4) {
  Rng rng(3, Purpose::data, static_cast<std::uint64_t>(step), static_cast<std::uint32_t>(part));
  Batch batch;
  for (int s = 0; s < sequences; ++s) {
    const int length = 2 + static_cast<int>(rng.below(9));
    std::vector<std::int32_t> tokens{static_cast<std::int32_t>(rng.below(7)),
                                     static_cast<std::int32_t>(rng.below(7))};
    while (static_cast<int>(tokens.size()) <= length) {
      tokens.push_back((tokens[tokens.size() - 1] + tokens[tokens.size() - 2]) % 7);
    }
    batch.lengths.push_back(length);
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end() - 1);
    // The first output is not scored, because the second token is random.
    batch.targets.push_back(-1);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 2, tokens.end());
  }
  return batch;
}

double loss_of(Decoder& decoder, const Batch& batch) {
  return decoder.loss_of(batch).value.value().item();
}

TrainerOptions options(std::int64_t steps) {
  return {.steps = steps,
          .schedule = {.peak = 1e-2, .warm_up = 3, .steps = 100},
          .optimizer = AdamOptions{.clip = 1}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_whole_gradient_agrees_with_difference_quotients) {
  const auto backend = make_reference_backend();
  for (const auto& [name, config] : variants()) {
    Decoder decoder(*backend, config, 2, {DType::f64});
    const Batch batch = batch_of(1, 0);
    backpropagate([&] { return decoder.loss_of(batch).value; });
    Rng rng(4, Purpose::test);
    for (const Parameter& p : decoder.parameters().all()) {
      const auto gradient = p.var().grad().to_doubles();
      auto* const w = p.value().data<double>();
      for (int trial = 0; trial < 3; ++trial) {
        const auto i = rng.below(static_cast<std::uint32_t>(p.value().size()));
        const double kept = w[i];
        const auto quotient = [&](double h) {
          w[i] = kept + h;
          const double above = loss_of(decoder, batch);
          w[i] = kept - h;
          const double below = loss_of(decoder, batch);
          w[i] = kept;
          return (above - below) / (2 * h);
        };
        // Combines two difference quotients so that the third derivative of the loss cancels. This
        // derivative is large if a mixer normalizes short vectors to a fixed length.
        const double slope = (4 * quotient(5e-6) - quotient(1e-5)) / 3;
        BOOST_TEST_CONTEXT(name << ": " << p.name() << "[" << i << "]") {
          BOOST_TEST(std::abs(slope - gradient[i]) < 1e-8);
        }
      }
    }
  }
}

// With many classes and an output bias, the loss must not be fused, because the fused loss does not
// support a bias.
BOOST_AUTO_TEST_CASE(an_output_bias_counts_with_many_classes) {
  const auto backend = make_reference_backend();
  DecoderConfig config = small();
  config.vocabulary = many_classes;
  config.output_bias = true;
  Decoder decoder(*backend, config, 2, {DType::f64});
  const Batch batch = batch_of(1, 0);
  const double before = loss_of(decoder, batch);
  const Parameter& bias = decoder.output().bias;
  BOOST_REQUIRE(static_cast<bool>(bias));
  backpropagate([&] { return decoder.loss_of(batch).value; });
  const auto gradient = bias.var().grad().to_doubles();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    bias.value().data<double>()[i] = -1e-3 * gradient[i];
  }
  BOOST_TEST(loss_of(decoder, batch) < before);
}

BOOST_AUTO_TEST_CASE(every_variant_changes_the_result) {
  const auto backend = make_reference_backend();
  std::map<double, std::string> seen;
  for (const auto& [name, config] : variants()) {
    Decoder decoder(*backend, config, 2, {DType::f64});
    const double loss = loss_of(decoder, batch_of(1, 0));
    BOOST_TEST_CONTEXT(name << " and " << seen[loss]) {
      // Only these variants may have the same loss as another one: a learned gamma initially has
      // the value of a constant gamma, and a bias is initially 0.
      BOOST_TEST(
          (seen[loss].empty() || name.starts_with("gamma") || name == "with an output bias"));
    }
    seen[loss] = name;
  }
}

BOOST_AUTO_TEST_CASE(every_variant_decodes_with_a_cache_as_in_one_pass) {
  const auto backend = make_cpu_backend({.threads = 1, .math = Math::exact});
  const Tokens tokens{1, 2, 3, 4, 5, 6, 0, 1, 1, 3, 0};
  for (const auto& [name, config] : variants()) {
    Decoder decoder(*backend, config, 2);
    const std::vector<std::int32_t> room{11};
    if (name == "tempered by length") {
      BOOST_CHECK_THROW(decoder.make_cache(room), Error);
      continue;
    }
    const auto whole = decoder.features(make_input(*backend, tokens, room)).value().to_doubles();
    KeyValueCache cache = decoder.make_cache(room);
    std::size_t first = 0;
    for (const std::int32_t count : {4, 1, 1, 3, 2}) {
      const auto size = static_cast<std::size_t>(count);
      cache.extend(std::vector{count});
      const auto input = make_input(*backend, std::span(tokens).subspan(first, size),
                                    std::vector{count}, cache.lengths());
      const auto rows = decoder.features(input, &cache).value().to_doubles();
      for (std::size_t i = 0; i < rows.size(); ++i) {
        BOOST_TEST_CONTEXT(name << ", token " << first + i / 16) {
          BOOST_TEST(std::abs(rows[i] - whole[first * 16 + i]) < 1e-5);
        }
      }
      first += size;
    }
  }
}

BOOST_AUTO_TEST_CASE(gamma_is_learned_by_layer_or_by_head) {
  const auto backend = make_cpu_backend({.threads = 1});
  for (const auto& [name, size] : {std::pair("gamma of layers", 1), {"gamma of heads", 3}}) {
    Decoder decoder(*backend, variants().at(name), 2);
    BOOST_TEST(!decoder.parameters().find("blocks.0.mixing.gamma_logit"));
    const Parameter* logit = decoder.parameters().find("blocks.1.mixing.gamma_logit");
    BOOST_REQUIRE(logit);
    BOOST_TEST(!logit->decays());
    const auto gammas = [&] {
      std::vector<double> all;
      for (const auto& [number, value] : decoder.learned_numbers()) {
        BOOST_TEST(number.starts_with("gamma 1"));
        all.push_back(value);
      }
      return all;
    };
    BOOST_REQUIRE_EQUAL(gammas().size(), static_cast<std::size_t>(size));
    for (const double gamma : gammas()) BOOST_TEST(std::abs(gamma - 0.7) < 1e-6);
    const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part); };
    Trainer(decoder, source, options(60)).run();
    for (const double gamma : gammas()) BOOST_TEST(std::abs(gamma - 0.7) > 1e-3);
  }
}

BOOST_AUTO_TEST_CASE(sinusoidal_positions_follow_the_formula_at_any_length) {
  const auto backend = make_reference_backend();
  Sinusoids tables(10000, 2);
  tables.table(*backend, DType::f64, 6, 2);
  // This call needs more rows than the previous one, so the table grows.
  const Tensor table = tables.table(*backend, DType::f64, 6, 5);
  BOOST_TEST(table.rows() >= 5);
  const auto x = table.to_doubles();
  for (std::size_t p = 0; p < 5; ++p) {
    for (std::size_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(p) * std::pow(10000.0, -2.0 * double(i) / 6);
      BOOST_TEST(std::abs(x[p * 6 + 2 * i] - std::sin(angle)) < 1e-6);
      BOOST_TEST(std::abs(x[p * 6 + 2 * i + 1] - std::cos(angle)) < 1e-6);
    }
  }
}

BOOST_AUTO_TEST_CASE(sequences_beyond_a_learned_table_are_refused) {
  const auto backend = make_reference_backend();
  DecoderConfig config = small();
  config.positions = Positions::learned;
  config.longest = 3;
  Decoder decoder(*backend, config, 2);
  BOOST_TEST(decoder.positions().weight.value().shape() == Shape({3, 16}));
  const Tokens tokens{1, 2, 3, 4};
  decoder.features(make_input(*backend, std::span(tokens).first(3), std::vector{3}));
  const auto four = [&] { decoder.features(make_input(*backend, tokens, std::vector{4})); };
  BOOST_TEST(contains(refusal(four), "at most 3 tokens"));
}

BOOST_AUTO_TEST_CASE(initial_weights_of_residual_projections_can_be_scaled_down) {
  const auto backend = make_reference_backend();
  DecoderConfig config = small();
  const auto deviation = [&](const char* name) {
    const Decoder decoder(*backend, config, 2);
    double sum = 0;
    const auto x = decoder.parameters().find(name)->value().to_doubles();
    for (const double value : x) sum += value * value;
    return std::sqrt(sum / static_cast<double>(x.size()));
  };
  for (const char* part : {"mixing.out", "feed_forward.down"}) {
    const std::string name = std::string("blocks.1.") + part + ".weight";
    config.start = Start::plain;
    const double plain = deviation(name.c_str());
    config.start = Start::residual;
    // With 2 layers, Start::residual divides the initial residual projections by sqrt(4).
    BOOST_TEST(std::abs(deviation(name.c_str()) - plain / 2) < 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(a_tied_model_shares_one_table_between_embedding_and_output_layer) {
  const auto backend = make_reference_backend();
  DecoderConfig config = small();
  const std::int64_t apart = Decoder(*backend, config, 2).parameters().count();
  config.tied = true;
  const Decoder tied(*backend, config, 2);
  BOOST_TEST(tied.parameters().count() == apart - 7 * 16);
  BOOST_TEST(!tied.parameters().find("output.weight"));
  BOOST_TEST(tied.output().weight.name() == "embedding.weight");
}

BOOST_AUTO_TEST_CASE(impossible_configurations_are_refused_in_one_line) {
  const auto starts = [&](const char* begin, auto change) {
    DecoderConfig config = small();
    change(config);
    const std::string message = refusal([&] { check(config); });
    BOOST_TEST(message.starts_with(begin), message);
    BOOST_TEST(message.find('\n') == std::string::npos);
  };
  starts("accepted", [](DecoderConfig&) {});
  starts("model: expected vocabulary, width, inner and longest of at least 1",
         [](DecoderConfig& c) { c.vocabulary = 0; });
  starts("heads: expected one entry for all layers or one for each of the 2 layers, got 3",
         [](DecoderConfig& c) { c.mixers = parse_layers("softmax:2;fal:2;softmax:2", 16); });
  starts("heads: ", [](DecoderConfig& c) { c.mixers = {}; });
  starts("gamma: expected 0 <= gamma < 1, got 1",
         [](DecoderConfig& c) { c.mixers = parse_layers("chacal:2{gamma=1}", 16); });
  starts("gamma: expected 0 < gamma < 1 for a learned gamma", [](DecoderConfig& c) {
    c.mixers = parse_layers("chacal:2{gamma=0,learned_gamma=head}", 16);
  });
  starts("norms_after: expected blocks in sequential order",
         [](DecoderConfig& c) { c.norms_after = true; });
  starts("dropout: expected 0 <= rate < 1, got 1", [](DecoderConfig& c) { c.dropout = 1; });
  starts("tied: ", [](DecoderConfig& c) {
    c.tied = true;
    c.outputs = {8};
  });
  starts("tied: ", [](DecoderConfig& c) {
    c.tied = true;
    c.outputs = {7, 7};
  });
}

BOOST_AUTO_TEST_CASE(tokens_see_neither_other_sequences_nor_later_tokens) {
  const auto backend = make_reference_backend();
  Decoder decoder(*backend, small(), 2);
  const Batch batch = batch_of(1, 0);
  const auto together =
      decoder.features(make_input(*backend, batch.tokens, batch.lengths)).value().to_doubles();
  std::size_t first = 0;
  for (const std::int32_t length : batch.lengths) {
    for (std::int32_t seen = 1; seen <= length; ++seen) {
      const std::span<const std::int32_t> tokens(batch.tokens.data() + first,
                                                 static_cast<std::size_t>(seen));
      const auto alone_ =
          decoder.features(make_input(*backend, tokens, std::vector{seen})).value().to_doubles();
      const auto last = (first + static_cast<std::size_t>(seen) - 1) * 16;
      BOOST_TEST(std::vector<double>(alone_.end() - 16, alone_.end()) ==
                 std::vector<double>(together.begin() + static_cast<std::ptrdiff_t>(last),
                                     together.begin() + static_cast<std::ptrdiff_t>(last) + 16));
    }
    first += static_cast<std::size_t>(length);
  }
}

BOOST_AUTO_TEST_CASE(a_rope_table_that_grew_equals_one_of_the_full_length) {
  const auto backend = make_reference_backend();
  DecoderConfig config = small();
  const Batch batch = batch_of(1, 0);
  Decoder early(*backend, config, 2);
  config.longest = 1;
  Decoder late(*backend, config, 2);
  BOOST_TEST(loss_of(late, batch) == loss_of(early, batch));
}

BOOST_AUTO_TEST_CASE(rotary_positions_affect_fal_heads_only_if_enabled) {
  const auto backend = make_reference_backend();
  const auto loss = [&](const char* heads, double share, bool in_fal) {
    DecoderConfig config = small();
    config.mixers = parse_layers(
        heads, 16, {{"rope_share", shortest(share)}, {"rope_in_fal", in_fal ? "1" : "0"}});
    Decoder decoder(*backend, config, 2);
    return loss_of(decoder, batch_of(1, 0, 9));
  };
  BOOST_TEST(loss("softmax:2", 1, false) != loss("softmax:2", 0, false));
  BOOST_TEST(loss("fal:2", 1, false) == loss("fal:2", 0, false));
  BOOST_TEST(loss("fal:2", 1, true) != loss("fal:2", 0, false));
}

BOOST_AUTO_TEST_CASE(rotating_in_place_gives_the_same_bits) {
  const auto backend = make_reference_backend();
  Rng rng(1, Purpose::test);
  std::vector<double> numbers(6 * 12);
  for (double& x : numbers) x = rng.normal();
  const std::vector<double> frequencies{1, 0.1};
  const Tensor table = rope_table(*backend, DType::f64, 6, frequencies);
  const Tensor positions = Tensor::from(*backend, {6}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  const RopeLayout layout{.first_column = 2, .heads = 2, .width = 5, .dims = 4};
  const auto run = [&](bool in_place) {
    const Var x(Tensor::from(*backend, {6, 12}, DType::f64, numbers), true);
    Tape tape;
    const Var y = recorded(tape, [&] {
      return in_place ? rope_in_place(x, positions, table, layout)
                      : rope(x, positions, table, layout);
    });
    const auto out = y.value().to_doubles();
    const Tensor dy = Tensor::from(*backend, {6, 12}, DType::f64, numbers);
    tape.backward(y, dy);
    BOOST_TEST(dy.to_doubles() == numbers);  // a gradient owned by the caller is not changed
    return std::pair(out, x.grad().to_doubles());
  };
  BOOST_CHECK(run(true) == run(false));
}

BOOST_AUTO_TEST_CASE(modules_are_found_by_their_types) {
  const auto backend = make_reference_backend();
  const Decoder decoder(*backend, small(), 2);
  BOOST_TEST(decoder.block(1).mixer<SoftmaxHeads>(0).heads == 2);
  BOOST_CHECK_THROW(decoder.block(1).mixer<SoftmaxHeads>(1), Error);
  BOOST_CHECK_THROW(decoder.block(1).mixer<SoftmaxHeads>(2), Error);
  BOOST_TEST(decoder.block(0).mixing.projection.weight.value().shape() == Shape({48, 16}));
}

BOOST_AUTO_TEST_CASE(each_output_layer_learns_only_from_its_own_batches) {
  const auto backend = make_cpu_backend({.threads = 1});
  DecoderConfig config = small();
  config.outputs = {7, 3};
  Decoder decoder(*backend, config, 2);
  const auto source = [](std::int64_t step, std::int64_t part) {
    Batch batch = batch_of(step, part);
    batch.head = 1;
    for (std::int32_t& target : batch.targets) target = target < 0 ? -1 : target % 3;
    return batch;
  };
  const Parameter& first = decoder.output(0).weight;
  const Parameter& second = decoder.output(1).weight;
  BOOST_TEST(second.value().shape() == Shape({3, 16}));
  const auto before = std::pair(first.value().to_doubles(), second.value().to_doubles());
  Trainer(decoder, source, options(2)).run();
  BOOST_TEST(first.value().to_doubles() == before.first);
  BOOST_TEST(second.value().to_doubles() != before.second);
  Batch none = batch_of(1, 0);
  none.head = 2;
  BOOST_CHECK_THROW(decoder.loss_of(none), Error);
}

BOOST_AUTO_TEST_CASE(an_interrupted_run_has_the_same_bits_as_an_uninterrupted_one) {
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part, 16); };
  const auto one_thread = make_cpu_backend({.threads = 1});
  Decoder whole(*one_thread, small(), 2);
  const std::vector<double> whole_losses = train_losses(whole, source, options(100));
  BOOST_TEST(whole_losses.front() > 1.8);
  BOOST_TEST(whole_losses.back() < 0.5 * whole_losses.front());

  const TemporaryFolder folder;
  std::vector<double> cut_losses;
  TrainerOptions cut = options(100);
  cut.checkpoints.folder = folder.path();
  const TrainerHooks hooks{.report = [&](const StepReport& r) { cut_losses.push_back(r.loss); },
                           .stop = [&] { return cut_losses.size() == 37; }};
  {
    Decoder first(*one_thread, small(), 2);
    BOOST_TEST((Trainer(first, source, cut, hooks).run() == Outcome::stopped));
  }
  const auto three_threads = make_cpu_backend({.threads = 3});
  // Another seed gives other initial values, so equal values can only come from the checkpoint
  // files.
  Decoder second(*three_threads, small(), 99);
  Trainer trainer(second, source, cut, hooks);
  BOOST_TEST(trainer.resume_latest());
  trainer.run();
  BOOST_TEST(cut_losses == whole_losses);
  BOOST_CHECK(values_of(second) == values_of(whole));
}

BOOST_AUTO_TEST_CASE(the_gradient_under_dropout_agrees_with_difference_quotients) {
  const auto backend = make_reference_backend();
  const Batch batch = batch_of(1, 0);
  std::map<std::string, std::vector<double>> gradients[2];
  for (const auto& [order, after] :
       {std::pair(Order::parallel, false), {Order::sequential, true}}) {
    for (const bool recompute : {false, true}) {
      DecoderConfig config = small();
      config.order = order;
      config.norms_after = after;
      config.dropout = 0.3;
      Decoder decoder(*backend, config, 2, {DType::f64});
      decoder.recompute = recompute;
      const auto& noise = decoder.parameters().noise();
      noise->prepare(5);
      const Noise::Drawing drawing(*noise, 0);
      backpropagate([&] { return decoder.loss_of(batch).value; });
      Rng rng(4, Purpose::test);
      for (const Parameter& p : decoder.parameters().all()) {
        const auto gradient = p.var().grad().to_doubles();
        gradients[recompute][text(after, p.name())] = gradient;
        if (recompute) continue;
        auto* const w = p.value().data<double>();
        const auto i = rng.below(static_cast<std::uint32_t>(p.value().size()));
        const double kept = w[i];
        const auto quotient = [&](double h) {
          w[i] = kept + h;
          const double above = loss_of(decoder, batch);
          w[i] = kept - h;
          const double below = loss_of(decoder, batch);
          w[i] = kept;
          return (above - below) / (2 * h);
        };
        const double slope = (4 * quotient(5e-6) - quotient(1e-5)) / 3;
        BOOST_TEST(std::abs(slope - gradient[i]) < 1e-8, p.name() << "[" << i << "]");
      }
    }
  }
  // With recomputation, a block draws the same random numbers again in the backward pass, so the
  // gradients are equal.
  BOOST_CHECK(gradients[0] == gradients[1]);
}

BOOST_AUTO_TEST_CASE(dropout_changes_training_and_not_evaluation) {
  const auto backend = make_cpu_backend({.threads = 1});
  const Batch batch = batch_of(1, 0);
  Decoder plain(*backend, small(), 2);
  DecoderConfig config = small();
  config.dropout = 0.5;
  Decoder dropping(*backend, config, 2);
  const double whole = loss_of(plain, batch);
  BOOST_TEST(loss_of(dropping, batch) == whole);
  const auto drawn = [&](std::int64_t step, std::int64_t part) {
    const auto& noise = dropping.parameters().noise();
    noise->prepare(step);
    const Noise::Drawing drawing(*noise, part);
    return loss_of(dropping, batch);
  };
  BOOST_TEST(drawn(1, 0) != whole);
  BOOST_TEST(drawn(1, 0) == drawn(1, 0));
  BOOST_TEST(drawn(1, 0) != drawn(2, 0));
  BOOST_TEST(drawn(1, 0) != drawn(1, 1));
  BOOST_TEST(loss_of(dropping, batch) == whole);

  // Without blocks, dropout acts on the embedding alone.
  config.layers = 0;
  config.mixers = {config.mixers.front()};
  Decoder embedding(*backend, config, 2);
  const double before = loss_of(embedding, batch);
  embedding.parameters().noise()->prepare(1);
  const Noise::Drawing drawing(*embedding.parameters().noise(), 0);
  BOOST_TEST(loss_of(embedding, batch) != before);
}

BOOST_AUTO_TEST_CASE(a_run_with_dropout_that_was_interrupted_has_the_same_bits) {
  DecoderConfig config = small();
  config.dropout = 0.2;
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part, 16); };
  const auto one_thread = make_cpu_backend({.threads = 1});
  Decoder whole(*one_thread, config, 2);
  Trainer(whole, source, options(20), {}).run();

  const TemporaryFolder folder;
  TrainerOptions cut = options(20);
  cut.checkpoints.folder = folder.path();
  int steps = 0;
  const TrainerHooks hooks{.report = [&](const StepReport&) { ++steps; },
                           .stop = [&] { return steps == 7; }};
  {
    Decoder first(*one_thread, config, 2);
    BOOST_TEST((Trainer(first, source, cut, hooks).run() == Outcome::stopped));
  }
  const auto three_threads = make_cpu_backend({.threads = 3});
  Decoder second(*three_threads, config, 2);
  second.recompute = true;
  Trainer trainer(second, source, cut, hooks);
  BOOST_TEST(trainer.resume_latest());
  trainer.run();
  BOOST_CHECK(values_of(second) == values_of(whole));
}

BOOST_AUTO_TEST_CASE(a_bf16_model_computes_nearly_the_same_and_learns) {
  const auto exact = make_cpu_backend({.threads = 2, .math = Math::exact});
  const auto rounded = make_cpu_backend({.threads = 2, .math = Math::bf16});
  Decoder one(*exact, small(), 2), two(*rounded, small(), 2);
  DType seen{};
  two.watch = [&](const std::string& name, const Tensor& x) {
    if (name == "blocks.1.feed_forward") seen = x.dtype();
  };
  const double expected = loss_of(one, batch_of(1, 0)), got = loss_of(two, batch_of(1, 0));
  two.watch = nullptr;
  // If the backend supports bf16 tensors, activations are bf16. Otherwise only the operands of
  // products are rounded to bf16.
  const bool takes_bf16 = refusal([&] { rounded->require_dtype(DType::bf16); }) == "accepted";
  BOOST_TEST((seen == DType::bf16) == takes_bf16);
  BOOST_TEST(got != expected);
  // Rounding to bf16 changes a number by up to 2^-8 of its value. The loss may change by a few such
  // errors.
  BOOST_TEST(std::abs(got - expected) < 0.02);
  const auto source = [](std::int64_t step, std::int64_t part) { return batch_of(step, part, 16); };
  const std::vector<double> losses = train_losses(two, source, options(100));
  BOOST_TEST(losses.back() < 0.6 * losses.front());
  // Parameters are stored as f32 master weights.
  BOOST_TEST(two.parameters().all()[0].value().dtype() == DType::f32);
}

BOOST_AUTO_TEST_CASE(every_activation_can_be_watched) {
  const auto backend = make_reference_backend();
  Decoder decoder(*backend, small(), 2);
  std::map<std::string, Shape> seen;
  decoder.watch = [&](const std::string& name, const Tensor& x) { seen[name] = x.shape(); };
  Batch batch = batch_of(1, 0);
  decoder.loss_of(batch);
  const auto tokens = static_cast<std::int64_t>(batch.tokens.size());
  BOOST_TEST(seen.at("embedding") == Shape({tokens, 16}));
  BOOST_TEST(seen.at("blocks.1.mixing.projection") == Shape({tokens, 48}));
  BOOST_TEST(seen.at("blocks.0.mixing.heads") == Shape({tokens, 16}));
  BOOST_TEST(seen.at("blocks.1.mixing") == Shape({tokens, 16}));
  BOOST_TEST(seen.at("blocks.1.feed_forward") == Shape({tokens, 16}));
  BOOST_TEST(seen.at("logits") == Shape({tokens, 7}));
}

BOOST_AUTO_TEST_CASE(a_step_neither_sums_nor_copies_gradients) {
  // Residuals must be fused into products, and gradients must be accumulated in place.
  const auto backend = make_reference_backend();
  Decoder decoder(*backend, small(), 2);
  std::map<std::string_view, int> calls;
  backend->observer = [&](std::string_view name) { ++calls[name]; };
  backpropagate([&] { return decoder.loss_of(batch_of(1, 0)).value; });
  backend->observer = nullptr;
  BOOST_TEST(calls["combine"] == 0);
  BOOST_TEST(calls["copy"] == 0);
  BOOST_TEST(calls["add_bias"] == 0);
  BOOST_TEST(calls["activate_backward"] == 0);
  BOOST_TEST(calls["matmul"] == 2 * 4 * 3 + 3);
}

BOOST_AUTO_TEST_SUITE_END()
