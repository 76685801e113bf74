#include "nn/heads.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "autograd/chacal.h"
#include "autograd/elementwise.h"
#include "autograd/fal.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/rng.h"
#include "nn/cache.h"

using namespace longhand;
using namespace longhand::nn;

BOOST_AUTO_TEST_SUITE(heads_test)

BOOST_AUTO_TEST_CASE(heads_without_a_width_share_what_the_others_leave) {
  const auto list = [](std::string_view text, std::int64_t width) {
    return text_of(parse_heads(text, width));
  };
  BOOST_TEST(list("softmax:3,fal:1", 64) == "softmax:3x16,fal:1x16");
  BOOST_TEST(list("softmax:1x704,fal:1x64", 768) == "softmax:1x704,fal:1x64");
  BOOST_TEST(list("softmax:1,fal:1x64", 768) == "softmax:1x704,fal:1x64");
  BOOST_TEST(list("softmax:1", 768) == "softmax:1x768");
  BOOST_TEST(list("fal:2x5", 7) == "fal:2x5");
  BOOST_TEST(columns(parse_heads("softmax:3x5,fal:2x4", 64)) == 23);
  const auto all = places(parse_heads("softmax:3x5,fal:2x4", 64));
  BOOST_TEST(all[1].projection == 45);
  BOOST_TEST(all[1].output == 15);
}

BOOST_AUTO_TEST_CASE(lists_of_layers_are_parted_by_semicolons) {
  BOOST_TEST(text_of(parse_layers("softmax:2", 8)) == "softmax:2x4");
  BOOST_TEST(text_of(parse_layers("softmax:2;softmax:1x2,chacal:1", 8)) ==
             "softmax:2x4;softmax:1x2,chacal:1x6");
  for (const char* text : {"", ";", "softmax:2;", ";softmax:2", "softmax:2;;softmax:2"}) {
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_THROW(parse_layers(text, 8), Error); }
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_a_list_of_heads_is_refused) {
  for (const char* text : {"", "softmax", "softmax:", "softmax:0", "softmax:-1", "soft:1",
                           "softmax:1,", ",softmax:1", "softmax:1x", "softmax:1x0", "softmax:1x2x3",
                           "softmax:3", "softmax:1x64,fal:1", "softmax:99999999999999999999"}) {
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_THROW(parse_heads(text, 64), Error); }
  }
}

BOOST_AUTO_TEST_CASE(mixed_heads_are_each_kind_by_itself_side_by_side) {
  const auto backend = make_reference_backend();
  const HeadList heads = parse_heads("softmax:2x3,fal:1x4,chacal:2x3,softmax:1x2,chacal:1x5", 99);
  const std::vector<std::int32_t> lengths{5, 1, 9};
  const std::int64_t tokens = 15, width = 3 * columns(heads);
  Rng rng(1, Purpose::test);
  const auto random = [&](const Shape& shape) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    for (double& x : values) x = rng.normal();
    return Tensor::from(*backend, shape, DType::f64, values);
  };
  const Segments segments(*backend, lengths);
  const Tensor x = random({tokens, width});
  const Tensor dy = random({tokens, columns(heads)});

  const Var qkv(x, true);
  const Var gamma(Tensor::from(*backend, {3}, DType::f64, std::vector<double>{0.2, 0.9, 0.6}),
                  true);
  std::vector<Tensor> matches;
  Tape tape;
  Var y;
  {
    const Recording recording(tape);
    y = mixed_attention(qkv, heads, segments, {}, &matches, {.gamma = gamma});
  }
  tape.backward(y, dy);

  const auto part = [](const Tensor& t, std::int64_t first, std::int64_t count) {
    const auto all = t.to_doubles();
    std::vector<double> values;
    for (std::int64_t row = 0; row < t.rows(); ++row) {
      for (std::int64_t j = first; j < first + count; ++j) {
        values.push_back(all[static_cast<std::size_t>(row * t.columns() + j)]);
      }
    }
    return values;
  };
  BOOST_REQUIRE(matches.size() == 5u);
  BOOST_TEST(!matches[0]);
  std::int64_t chained = 0;  // ChaCAL heads of the groups before
  for (const HeadPlace& place : places(heads)) {
    const auto& [kind, count, each] = place.group;
    const std::int64_t n = count * each;
    const auto operand = [&](std::int64_t which) {
      return Var(
          Tensor::from(*backend, {tokens, n}, DType::f64, part(x, place.projection + which * n, n)),
          true);
    };
    const Var q = operand(0), k = operand(1), v = operand(2);
    Tape alone;
    Var out;
    {
      const Recording recording(alone);
      if (kind == HeadKind::fal) {
        const FalResult result = fal({.q = all_columns(q, count),
                                      .k = all_columns(k, count),
                                      .v = all_columns(v, count),
                                      .queries = segments});
        out = result.y;
        BOOST_TEST(result.match.to_ints() == matches[1].to_ints());
      } else if (kind == HeadKind::chacal) {
        const Tensor mine = gamma.value().slice(chained, count);
        out = chacal({.q = all_columns(q, count), .k = all_columns(k, count), .queries = segments},
                     all_columns(v, count), Var(mine, true));
      } else {
        out =
            attention({.q = all_columns(q, count), .k = all_columns(k, count), .queries = segments},
                      all_columns(v, count));
      }
    }
    BOOST_TEST(out.value().to_doubles() == part(y.value(), place.output, n));
    alone.backward(out, Tensor::from(*backend, {tokens, n}, DType::f64, part(dy, place.output, n)));
    for (const auto& [operand_var, which] : {std::pair{q, 0}, {k, 1}, {v, 2}}) {
      BOOST_TEST(operand_var.grad().to_doubles() ==
                 part(qkv.grad(), place.projection + which * n, n));
    }
    if (kind == HeadKind::chacal) chained += count;
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_mixed_heads_reach_gamma_beta_and_a_projection_used_twice) {
  const auto backend = make_reference_backend();
  const HeadList heads = parse_heads("chacal:2x2,softmax:1x3,fal:1x2", 9);
  Rng rng(3, Purpose::test);
  const auto random = [&](const Shape& shape, double size) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    for (double& x : values) x = size * rng.normal();
    return Tensor::from(*backend, shape, DType::f64, values);
  };
  const Segments segments(*backend, std::vector<std::int32_t>{4, 3});
  const Tensor x = random({7, 27}, 1), dy = random({7, 9}, 1);
  const std::vector<double> gammas{0.3, 0.8}, betas{0.7};
  const auto value = [&](const Tensor& qkv, const std::vector<double>& g,
                         const std::vector<double>& b) {
    const Var y = mixed_attention(qkv, heads, segments, {}, nullptr,
                                  {.gamma = Tensor::from(*backend, {2}, DType::f64, g),
                                   .temper = Temper::position,
                                   .beta = Tensor::from(*backend, {1}, DType::f64, b)});
    const auto all = y.value().to_doubles(), weights = dy.to_doubles();
    double sum = 0;
    for (std::size_t i = 0; i < all.size(); ++i) sum += all[i] * weights[i];
    return sum;
  };
  const Var qkv(x, true);
  const HeadOptions options{.gamma = Var(Tensor::from(*backend, {2}, DType::f64, gammas), true),
                            .temper = Temper::position,
                            .beta = Var(Tensor::from(*backend, {1}, DType::f64, betas), true)};
  Tape tape;
  Var y;
  {
    const Recording recording(tape);
    // Twice: the second gradient is added to the first.
    const Var once = mixed_attention(qkv, heads, segments, {}, nullptr, options);
    y = add(once, mixed_attention(qkv, heads, segments, {}, nullptr, options), 0.25, 0.75);
  }
  tape.backward(y, dy);
  constexpr double h = 1e-6;
  const auto near = [](double got, double above, double below) {
    BOOST_TEST(std::abs(got - (above - below) / (2 * h)) < 1e-8);
  };
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<double> up = gammas, down = gammas;
    up[i] += h;
    down[i] -= h;
    near(options.gamma.grad().to_doubles()[i], value(x, up, betas), value(x, down, betas));
  }
  near(options.beta.grad().item(), value(x, gammas, {betas[0] + h}),
       value(x, gammas, {betas[0] - h}));
  for (std::size_t i = 0; i < 7 * 27; i += 5) {
    std::vector<double> up = x.to_doubles(), down = up;
    up[i] += h;
    down[i] -= h;
    near(qkv.grad().to_doubles()[i],
         value(Tensor::from(*backend, x.shape(), DType::f64, up), gammas, betas),
         value(Tensor::from(*backend, x.shape(), DType::f64, down), gammas, betas));
  }
}

BOOST_AUTO_TEST_CASE(mixed_heads_decode_in_chunks_of_any_size) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const HeadList heads = parse_heads("softmax:2x8,fal:1x4,chacal:2x6,chacal:1x5", 37);
    const HeadOptions options{
        .temper = Temper::position,
        .beta = Tensor::from(*backend, {1}, DType::f32, std::vector<double>{0.8}),
        .window = 11};
    const std::vector<std::int32_t> lengths{23, 7};
    const std::int64_t width = columns(heads);
    Rng rng(5, Purpose::test);
    std::vector<double> values(static_cast<std::size_t>(30 * 3 * width));
    for (double& x : values) x = rng.normal();
    const Tensor whole = Tensor::from(*backend, {30, 3 * width}, DType::f32, values);
    const std::vector<double> once =
        mixed_attention(whole, heads, Segments(*backend, lengths), {}, nullptr, options)
            .value()
            .to_doubles();
    for (const std::int32_t chunk : {1, 2, 5, 23}) {
      KeyValueCache cache(*backend, DType::f32, {heads}, std::vector<std::int32_t>{30, 7});
      for (std::int32_t first = 0; first < 23; first += chunk) {
        std::vector<std::int32_t> now;
        std::vector<double> rows, expected;
        std::int32_t begin = 0;
        for (const std::int32_t n : lengths) {
          const std::int32_t last = std::min(n, first + chunk);
          now.push_back(std::max(0, last - first));
          for (std::int32_t t = first; t < last; ++t) {
            const auto row = static_cast<std::size_t>(begin + t);
            const auto w = static_cast<std::size_t>(width);
            rows.insert(rows.end(), &values[row * 3 * w], &values[row * 3 * w] + 3 * w);
            expected.insert(expected.end(), &once[row * w], &once[row * w] + w);
          }
          begin += n;
        }
        const Tensor qkv = Tensor::from(
            *backend, {static_cast<std::int64_t>(rows.size()) / (3 * width), 3 * width}, DType::f32,
            rows);
        const Segments queries(*backend, now);
        cache.extend(now);
        cache.store(0, qkv, queries);
        const std::vector<double> y =
            mixed_attention(qkv, heads, queries, cache.layer(0), nullptr, options)
                .value()
                .to_doubles();
        BOOST_REQUIRE_EQUAL(y.size(), expected.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
          BOOST_TEST_CONTEXT(name << ", chunks of " << chunk << ", from " << first) {
            BOOST_REQUIRE(std::abs(y[i] - expected[i]) < 1e-5);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
