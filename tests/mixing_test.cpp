#include "nn/mixer_core/mixing.h"

#include <cmath>
#include "tests/check.h"

#include "autograd/chacal.h"
#include "autograd/combine.h"
#include "autograd/elementwise.h"
#include "autograd/fal.h"
#include "core/contract/elementwise.h"
#include "core/error.h"
#include "core/rng.h"
#include "nn/mixers/chacal.h"
#include "nn/mixers/fal.h"
#include "nn/mixers/softmax.h"
#include "nn/models/cache.h"
#include "tests/random_tensor.h"
#include "tests/recorded.h"

BOOST_AUTO_TEST_SUITE(mixing_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

/// An attention layer (Mixing) for a residual stream of the given width. Its weights are so large
/// that every part of the layer affects the result.
struct Layer {
  Parameters parameters;
  Mixing mixing;
  RopeTables tables;

  Layer(Backend& backend, std::string_view mixers, std::int64_t width, DType type,
        bool rotary = false)
      : parameters(backend, {type}, 7),
        mixing(Scope(parameters) / "mixing", {.width = width, .rotary = rotary},
               parse_mixers(mixers, width), normal(0.7), normal(0.7)) {
    mixing.build();
    for (const Parameter& p : parameters.all()) {
      const bool is_bias = p.name().find("score_bias") != std::string::npos;
      if (!is_bias && (p.value().shape().rank() != 1 || p.value().size() == 1)) continue;
      fill_random(p.value(), 9);
    }
  }
  Var operator()(const Var& x, const Input& input,
                 std::optional<Mixing::Cache> cache = std::nullopt) {
    Mixing::Pass pass{input, tables};
    if (cache) pass.cache.emplace(*cache);
    return mixing(x, {}, pass);
  }
};

Input input_of(Backend& backend, const std::vector<std::int32_t>& lengths,
               std::span<const std::int32_t> totals = {}) {
  std::int32_t tokens = 0;
  for (const std::int32_t n : lengths) tokens += n;
  return make_input(backend, std::vector<std::int32_t>(static_cast<std::size_t>(tokens)), lengths,
                    totals);
}

/// The entries of `count` columns of a matrix, from column `first`, row by row.
std::vector<double> columns_of(const Tensor& t, std::int64_t first, std::int64_t count) {
  const auto whole = t.to_doubles();
  std::vector<double> values;
  for (std::int64_t row = 0; row < t.rows(); ++row) {
    for (std::int64_t j = first; j < first + count; ++j) {
      values.push_back(whole[static_cast<std::size_t>(row * t.columns() + j)]);
    }
  }
  return values;
}

/// Computes the attention of a mixer (group of heads of one kind) with default options.
Var mechanism(std::string_view kind, const HeadVars& q, const HeadVars& k, const HeadVars& v,
              const Segments& segments) {
  if (kind == "fal") return fal({.q = q, .k = k, .v = v, .queries = segments}).y;
  const ScoreVars scores{.q = q, .k = k, .queries = segments};
  if (kind != "chacal") return attention(scores, v);
  return chacal(scores, v,
                Tensor::from(v.data.backend(), {1}, DType::f64, std::vector<double>{0.9}));
}

}  // namespace

BOOST_AUTO_TEST_CASE(heads_without_a_width_share_the_remaining_width) {
  const auto list = [](std::string_view text, std::int64_t width) {
    return text_of(parse_mixers(text, width));
  };
  BOOST_TEST(list("softmax:3,fal:1", 64) == "softmax:3x16,fal:1x16");
  BOOST_TEST(list("softmax:1x704,fal:1x64", 768) == "softmax:1x704,fal:1x64");
  BOOST_TEST(list("softmax:1,fal:1x64", 768) == "softmax:1x704,fal:1x64");
  BOOST_TEST(list("softmax:1", 768) == "softmax:1x768");
  BOOST_TEST(list("fal:2x5", 7) == "fal:2x5");
  BOOST_TEST(list("softmax:8/2", 64) == "softmax:8/2x8");
  BOOST_TEST(columns(parse_mixers("softmax:3x5,fal:2x4", 64)) == 23);
  BOOST_TEST(projection_columns(parse_mixers("softmax:4/2x5", 64)) == (4 + 2 * 2) * 5);
  const auto all = places(parse_mixers("softmax:3x5,fal:2x4,softmax:1x5", 64));
  BOOST_TEST(all[1].projection == 45);
  BOOST_TEST(all[1].output == 15);
  BOOST_TEST(all[2].heads_before == 3);
  BOOST_TEST(all[2].heads_alike == 4);
}

// Each kind of heads in this test changes softmax attention in one way, such as a decay with the
// distance. Its attention weights must equal those of softmax heads with the same projection,
// multiplied by the factor of its formula and normalized again.
BOOST_AUTO_TEST_CASE(variants_of_softmax_follow_their_formulas) {
  const auto backend = make_reference_backend();
  const std::vector<std::int32_t> lengths{5, 1, 9};
  const Input input = input_of(*backend, lengths);
  const Var x = random_tensor(*backend, {15, 6}, DType::f64, 3);
  // `number` is the bias of the gates of fox heads, or the trained factor s of ssmax heads, which
  // multiply scores by s ln n for n visible keys.
  const auto weights = [&](std::string_view heads, double number = 0) {
    Layer layer(*backend, heads, 6, DType::f64);
    for (const Parameter& p : layer.parameters.all()) {
      const auto has = [&](std::string_view part) {
        return p.name().find(part) != std::string::npos;
      };
      if (has("gate.weight")) backend->run(Fill{.value = 0, .y = p.value()});
      if (has("gate.bias") || has("ssmax")) backend->run(Fill{.value = number, .y = p.value()});
    }
    std::vector<MixerView> views;
    Mixing::Pass pass{input, layer.tables};
    pass.views = &views;
    layer.mixing(x, {}, pass);
    return views[0].all_weights().to_doubles();
  };
  const std::vector<double> plain = weights("softmax:2x3");
  const auto check = [&](const std::vector<double>& got, auto factor, double beside) {
    std::size_t at = 0;
    for (const std::int32_t n : lengths) {
      for (int h = 0; h < 2; ++h) {
        for (int i = 0; i < n; ++i, at += static_cast<std::size_t>(n)) {
          // The expected weights are the softmax weights times `factor`, divided by their sum. This
          // sum includes `beside`, the term of a sink, which is 0 for heads without a sink.
          double sum = beside;
          for (int j = 0; j <= i; ++j) sum += plain[at + j] * factor(h, i - j);
          for (int j = 0; j <= i; ++j) {
            BOOST_TEST(std::abs(got[at + j] - plain[at + j] * factor(h, i - j) / sum) < 1e-12);
          }
        }
      }
    }
  };
  check(
      weights("alibi:2x3"),
      [](int h, int far) { return std::exp(-far * (h == 0 ? 1.0 / 16 : 1.0 / 256)); }, 0);
  check(
      weights("fox:2x3", -0.4), [](int, int far) { return std::pow(1 / (1 + std::exp(0.4)), far); },
      0);
  // A sink is a score without a value. With a very low score it receives no weight. With a very
  // high score it receives all weight, and the keys receive none.
  check(
      weights("sink:2x3{sink=-500}"), [](int, int) { return 1.0; }, 0);
  for (const double weight : weights("sink:2x3{sink=500}")) BOOST_TEST(weight < 1e-100);
  // ssmax heads multiply scores by s ln n, where n is the number of visible keys, but at least 2.
  // With s = 1 / ln 2 this factor is 1 in the first two rows of a sequence.
  const std::vector<double> tempered = weights("ssmax:2x3", 1 / std::log(2));
  for (const std::size_t i : {0u, 5u, 6u}) BOOST_TEST(std::abs(tempered[i] - plain[i]) < 1e-12);
  BOOST_TEST(std::abs(tempered[10] - plain[10]) > 1e-3);
}

BOOST_AUTO_TEST_CASE(lists_of_layers_are_separated_by_semicolons) {
  BOOST_TEST(text_of(parse_layers("softmax:2", 8)) == "softmax:2x4");
  // If all layers have the same list of heads, text_of() writes the list once.
  BOOST_TEST(text_of(parse_layers("softmax:2;softmax:2", 8)) == "softmax:2x4");
  BOOST_TEST(text_of(parse_layers("softmax:2;softmax:1x2,chacal:1", 8)) ==
             "softmax:2x4;softmax:1x2,chacal:1x6");
  for (const char* text : {"", ";", "softmax:2;", ";softmax:2", "softmax:2;;softmax:2"}) {
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_THROW(parse_layers(text, 8), Error); }
  }
}

BOOST_AUTO_TEST_CASE(options_in_braces_override_those_of_all_mixers) {
  const MixerOptions given{{"window", "16"}, {"gamma", "0.5"}};
  const auto layers =
      parse_layers("softmax:2,softmax:1{window=3,temper=position};chacal:3", 12, given);
  BOOST_TEST(text_of(layers) ==
             "softmax:2x4{window=16},softmax:1x4{temper=position,window=3};chacal:3x4{gamma=0.5}");
  BOOST_TEST(text_of(layers, given) ==
             "softmax:2x4,softmax:1x4{temper=position,window=3};chacal:3x4");
  // text_of() omits an option in braces if the mixer would have the same value without it.
  BOOST_TEST(text_of(parse_layers("softmax:1{head_norm=none},tra:1", 8)) == "softmax:1x4,tra:1x4");
  BOOST_TEST(text_of(parse_layers("softmax:1,tra:1{head_norm=none}", 8), {{"head_norm", "none"}}) ==
             "softmax:1x4,tra:1x4");
  // Parsing the text of a list gives the same list again.
  BOOST_TEST(text_of(parse_layers(text_of(layers), 12)) == text_of(layers));
  BOOST_TEST(text_of(parse_layers(text_of(layers, given), 12, given)) == text_of(layers));
  for (const char* text : {"softmax:1{", "softmax:1{}x", "softmax:1{window}", "softmax:1{window=}",
                           "softmax:1{gamma=0.5}", "fal:1{window=3}", "softmax:1{window=-1}"}) {
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_THROW(parse_layers(text, 8), Error); }
  }
}

BOOST_AUTO_TEST_CASE(broken_lists_of_heads_are_refused) {
  for (const char* text :
       {"", "softmax", "softmax:", "softmax:0", "softmax:-1", "soft:1", "softmax:1,", ",softmax:1",
        "softmax:1x", "softmax:1x0", "softmax:1x2x3", "softmax:3", "softmax:1x64,fal:1",
        "softmax:99999999999999999999", "softmax:3/2x4", "softmax:2/0x4", "softmax:2/4x4"}) {
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_THROW(parse_mixers(text, 64), Error); }
  }
}

BOOST_AUTO_TEST_CASE(mixers_side_by_side_compute_the_same_as_each_alone) {
  // Applies all mixers of a layer to one random projection, without the layer's matrices. The
  // outputs and gradients of each mixer must be those that it has alone.
  const auto backend = make_reference_backend();
  const std::vector<std::int32_t> lengths{5, 1, 9};
  const std::int64_t tokens = 15;
  Layer layer(*backend, "softmax:2x3,fal:1x4,chacal:2x3,softmax:4/2x2,chacal:1x5", 3, DType::f64);
  const MixerList& mixers = layer.mixing.mixers();
  const std::vector<MixerPlace>& all = layer.mixing.places();
  const std::int64_t wide = projection_columns(mixers), out = columns(mixers);
  const Tensor projection = random_tensor(*backend, {tokens, wide}, DType::f64, 1);
  const Tensor dy = random_tensor(*backend, {tokens, out}, DType::f64, 2);
  const Segments segments(*backend, lengths);

  const Var x(projection, true);
  const Tensor y(*backend, {tokens, out}, DType::f64);
  const Input input = input_of(*backend, lengths);
  const MixerPass pass{x, input, layer.tables, y};
  Tape tape;
  std::vector<HeadsBackward> backward;
  {
    const Recording recording(tape);
    for (const AnyMixer& mixer : mixers) backward.push_back(mixer->forward(pass));
  }
  for (std::size_t i = 0; i < mixers.size(); ++i) {
    backward[i]({dy, all[i].output, mixers[i]->heads, mixers[i]->width}, true);
  }

  for (std::size_t i = 0; i < mixers.size(); ++i) {
    const Mixer& mixer = *mixers[i];
    const std::int64_t sizes[] = {mixer.heads * mixer.width, mixer.key_heads * mixer.width,
                                  mixer.key_heads * mixer.width};
    std::int64_t first = all[i].projection;
    std::vector<Var> operands;
    std::vector<std::int64_t> begins;
    for (const std::int64_t n : sizes) {
      operands.emplace_back(
          Tensor::from(*backend, {tokens, n}, DType::f64, columns_of(projection, first, n)), true);
      begins.push_back(first);
      first += n;
    }
    const HeadVars q = all_columns(operands[0], mixer.heads);
    const HeadVars k = all_columns(operands[1], mixer.key_heads);
    const HeadVars v = all_columns(operands[2], mixer.key_heads);
    Tape alone;
    Var result;
    {
      const Recording recording(alone);
      result = mechanism(mixer.kind(), q, k, v, segments);
    }
    BOOST_TEST_CONTEXT("mixer " << i) {
      BOOST_TEST(result.value().to_doubles() == columns_of(y, all[i].output, sizes[0]));
      alone.backward(result, Tensor::from(*backend, {tokens, sizes[0]}, DType::f64,
                                          columns_of(dy, all[i].output, sizes[0])));
      for (std::size_t o = 0; o < 3; ++o) {
        BOOST_TEST(operands[o].grad().to_doubles() == columns_of(x.grad(), begins[o], sizes[o]));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_reach_every_parameter_even_of_a_layer_used_twice) {
  const auto backend = make_reference_backend();
  const std::vector<std::int32_t> lengths{4, 3};
  Layer layer(*backend,
              "chacal:2x2{learned_gamma=head,gamma=0.4,temper=position,beta=0.7},"
              "softmax:2/1x3{temper=position,beta=0.7,rope_share=0.7},fal:1x2,"
              "chacal:1x3{learned_gamma=head,gamma=0.4},"
              "softmax:2/1x4{head_norm=rms},fal:1x3{head_norm=rms_plus_one},"
              "biased:2/1x4{score_bias=matrix,score_bias_longest=5,temper=position,beta=0.7},"
              "biased:2/1x2{window=3,rope_share=0.7},biased:1x4{head_norm=rms},lstm:2x3,"
              "delta:2/1x4,delta:1x3{delta_convolution=0,delta_gate=0,delta_negative=0},"
              "deltaformer:2/1x4,deltaformer:1x4{head_norm=rms,rope_in_deltaformer=1},"
              "path:2x3{path_rank=4},path:1x4{path_convolution=1,head_norm=rms},"
              "selective_rope:2x4{angle_rank=3},"
              "selective_rope:1x2{angle_convolution=1,angle_gate=0}",
              6, DType::f64, true);
  BOOST_TEST(layer.parameters.find("mixing.gamma_logit")->value().size() == 3);
  BOOST_TEST(layer.parameters.find("mixing.beta")->value().size() == 1);
  const Input input = input_of(*backend, lengths);
  const Tensor x = random_tensor(*backend, {7, 6}, DType::f64, 3),
               dy = random_tensor(*backend, {7, 6}, DType::f64, 4);
  const auto forward = [&](const Var& at) {
    const Var once = layer(at, input);
    // The layer is used twice, so gradients are accumulated.
    return add(scale(once, 0.25), scale(layer(at, input), 0.75));
  };
  const auto value = [&] {
    const auto all = forward(x).value().to_doubles(), weights = dy.to_doubles();
    double sum = 0;
    for (std::size_t i = 0; i < all.size(); ++i) sum += all[i] * weights[i];
    return sum;
  };
  const Var in(x, true);
  Tape tape;
  const Var y = recorded(tape, [&] { return forward(in); });
  tape.backward(y, dy);
  constexpr double h = 1e-6;
  const auto check = [&](const std::string& name, double* entries, const Tensor& gradient) {
    const auto got = gradient.to_doubles();
    for (std::size_t i = 0; i<got.size(); i += got.size()> 20 ? 7 : 1) {
      const double kept = entries[i];
      entries[i] = kept + h;
      const double above = value();
      entries[i] = kept - h;
      const double below = value();
      entries[i] = kept;
      BOOST_TEST_CONTEXT(name << "[" << i << "]") {
        BOOST_TEST(std::abs(got[i] - (above - below) / (2 * h)) < 1e-7);
      }
    }
  };
  check("x", x.data<double>(), in.grad());
  for (const Parameter& p : layer.parameters.all()) {
    BOOST_REQUIRE(p.var().grad());
    check(p.name(), p.value().data<double>(), p.var().grad());
  }
}

BOOST_AUTO_TEST_CASE(mixers_decode_in_chunks_of_any_size) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    Layer layer(*backend,
                "softmax:2x8{window=11,temper=position,beta=0.8},softmax:4/2x4,fal:2/1x4,"
                "chacal:2x6{temper=position,beta=0.8},chacal:2/1x5,softmax:2/1x6{head_norm=rms},"
                "biased:2/1x4{score_bias=matrix,score_bias_longest=23,window=9},"
                "biased:2/1x6{temper=position,beta=0.8,window=11},biased:1x4{head_norm=rms},"
                "delta:2/1x6,delta:1x4{delta_convolution=0,delta_gate=0},lstm:2x3,"
                "deltaformer:2/1x4,deltaformer:1x4{head_norm=rms,rope_in_deltaformer=1},"
                "path:2x3{path_rank=4},path:1x4{path_convolution=1,head_norm=rms},"
                "selective_rope:2x4{angle_rank=3},"
                "selective_rope:1x2{angle_convolution=1,angle_gate=0}",
                6, DType::f32, true);
    const std::vector<std::int32_t> lengths{23, 7};
    const Tensor x = random_tensor(*backend, {30, 6}, DType::f32, 5);
    const auto values = x.to_doubles();
    const auto once = layer(x, input_of(*backend, lengths)).value().to_doubles();
    for (const std::int32_t chunk : {1, 2, 5, 23}) {
      KeyValueCache cache(*backend, std::vector<std::int32_t>{30, 7});
      cache.add_layer(layer.mixing.make_cache(DType::f32, cache.rows(), 2));
      for (std::int32_t first = 0; first < 23; first += chunk) {
        std::vector<std::int32_t> now;
        std::vector<double> rows, expected;
        std::int32_t begin = 0;
        for (const std::int32_t n : lengths) {
          const std::int32_t last = std::min(n, first + chunk);
          now.push_back(std::max(0, last - first));
          for (std::int32_t t = first; t < last; ++t) {
            const auto row = static_cast<std::ptrdiff_t>(6 * (begin + t));
            rows.insert(rows.end(), values.begin() + row, values.begin() + row + 6);
            expected.insert(expected.end(), once.begin() + row, once.begin() + row + 6);
          }
          begin += n;
        }
        cache.extend(now);
        const Tensor part = Tensor::from(*backend, {static_cast<std::int64_t>(rows.size()) / 6, 6},
                                         DType::f32, rows);
        const auto y = layer(part, input_of(*backend, now, cache.lengths()), cache.layer(0))
                           .value()
                           .to_doubles();
        BOOST_REQUIRE_EQUAL(y.size(), expected.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
          BOOST_TEST_CONTEXT(name << ", chunks of " << chunk << ", from " << first) {
            BOOST_REQUIRE(std::abs(y[i] - expected[i]) < 1e-4);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_mixer_returns_the_weights_that_it_computed) {
  const auto backend = make_reference_backend();
  Layer layer(*backend, "softmax:2x3,fal:1x3", 9, DType::f64, true);
  const Input input = input_of(*backend, {5, 2});
  std::vector<MixerView> views;
  std::map<std::string, Shape, std::less<>> seen;
  Mixing::Pass pass{input, layer.tables};
  pass.views = &views;
  pass.show = [&](std::string_view part, const Tensor& x) {
    seen.emplace(std::string(part), x.shape());
  };
  layer.mixing(random_tensor(*backend, {7, 9}, DType::f64, 6), {}, pass);
  BOOST_REQUIRE(views.size() == 2u);
  BOOST_TEST(views[0].all_weights().size() == 2 * (5 * 5 + 2 * 2));
  BOOST_TEST(!views[0].selected);
  BOOST_TEST(views[1].selected.shape() == Shape({7, 1}));
  BOOST_TEST(views[1].selected.to_ints()[0] == -1);  // the first row has no earlier key
  BOOST_TEST(seen.at("projection") == Shape({7, 27}));
  BOOST_TEST(seen.at("heads") == Shape({7, 9}));
  BOOST_TEST(seen.at("") == Shape({7, 9}));
}

BOOST_AUTO_TEST_CASE(lists_of_mixers_can_be_built_in_code) {
  SoftmaxHeads windowed = heads_of<SoftmaxHeads>(2, 16);
  windowed.window = 7;
  const MixerList typed{windowed, heads_of<FalHeads>(1, 8)};
  BOOST_TEST(text_of(typed) == text_of(parse_mixers("softmax:2x16{window=7},fal:1x8", 40)));
}

BOOST_AUTO_TEST_SUITE_END()
