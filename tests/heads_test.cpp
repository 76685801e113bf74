#include "nn/heads.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "autograd/attention.h"
#include "autograd/fal.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/rng.h"

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

BOOST_AUTO_TEST_CASE(what_is_not_a_list_of_heads_is_refused) {
  for (const char* text : {"", "softmax", "softmax:", "softmax:0", "softmax:-1", "soft:1",
                           "softmax:1,", ",softmax:1", "softmax:1x", "softmax:1x0", "softmax:1x2x3",
                           "softmax:3", "softmax:1x64,fal:1", "softmax:99999999999999999999"}) {
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_THROW(parse_heads(text, 64), Error); }
  }
}

BOOST_AUTO_TEST_CASE(mixed_heads_are_each_kind_by_itself_side_by_side) {
  const auto backend = make_reference_backend();
  const HeadList heads = parse_heads("softmax:2x3,fal:1x4,softmax:1x2", 99);
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
  std::vector<Tensor> matches;
  Tape tape;
  Var y;
  {
    const Recording recording(tape);
    y = mixed_attention(qkv, heads, segments, {}, &matches);
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
  BOOST_REQUIRE(matches.size() == 3u);
  BOOST_TEST(!matches[0]);
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
  }
}

BOOST_AUTO_TEST_SUITE_END()
