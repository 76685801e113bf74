#include "nn/mixers/biased.h"

#include <cmath>
#include "tests/check.h"

#include "autograd/tape.h"
#include "core/error.h"
#include "core/rng.h"
#include "nn/models/decode.h"
#include "nn/models/decoder.h"
#include "tests/random_tensor.h"

BOOST_AUTO_TEST_SUITE(biased_test)

using namespace longhand;
using namespace longhand::nn;

// Tests softmax heads with a trainable bias on the scores. mixing_test.cpp tests the gradients and
// the decoding of these heads.

namespace {

constexpr const char* kinds[] = {"biased:4/2{score_bias=matrix,score_bias_longest=9}",
                                 "biased:4/2{score_bias=heads}"};

DecoderConfig shape(std::string_view heads) {
  return {.vocabulary = 11, .width = 16, .layers = 2, .mixers = parse_layers(heads, 16)};
}

const Batch batch{.tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 3, 1},
                  .lengths = {9, 3},
                  .targets = {2, 3, 4, 5, 6, 7, 8, 9, 10, 3, 1, 2}};

/// Returns the attention weights of all heads of a layer for `batch`.
std::vector<double> weights_of(Decoder& model, std::size_t layer) {
  const auto views = model.look(make_input(model.backend(), batch.tokens, batch.lengths));
  return views[layer][0].all_weights().to_doubles();
}

}  // namespace

BOOST_AUTO_TEST_CASE(biased_heads_start_as_softmax_heads_with_the_same_parameters) {
  for (const auto& [backend, type, tolerance] :
       {std::tuple{make_reference_backend(), DType::f64, 1e-12},
        std::tuple{make_cpu_backend(), DType::f32, 1e-4},
        std::tuple{make_cpu_backend({.math = Math::bf16}), DType::f32, 3e-2}}) {
    Decoder plain(*backend, shape("softmax:4/2"), 5, {.type = type});
    for (const char* const kind : kinds) {
      Decoder biased(*backend, shape(kind), 5, {.type = type});
      BOOST_TEST_CONTEXT(backend->name() << " " << kind) {
        for (const Parameter& p : plain.parameters().all()) {
          const Parameter* const same = biased.parameters().find(p.name());
          BOOST_REQUIRE(same);
          BOOST_TEST((same->value().to_doubles() == p.value().to_doubles()));
        }
        const double expected = plain.loss_of(batch).value.value().item();
        BOOST_TEST(std::abs(biased.loss_of(batch).value.value().item() - expected) < tolerance);
        for (const std::size_t layer : {0, 1}) {
          const auto ours = weights_of(biased, layer), theirs = weights_of(plain, layer);
          BOOST_REQUIRE(ours.size() == theirs.size());
          for (std::size_t i = 0; i < ours.size(); ++i) {
            BOOST_REQUIRE(std::abs(ours[i] - theirs[i]) < tolerance);
          }
        }
        BOOST_TEST(!biased.repeats());
        BOOST_TEST(plain.repeats());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_bias_matrix_adds_its_entry_for_head_query_and_key) {
  const auto backend = make_reference_backend();
  Decoder plain(*backend, shape("softmax:4/2"), 5, {.type = DType::f64});
  Decoder biased(*backend, shape(kinds[0]), 5, {.type = DType::f64});
  const Tensor matrix = biased.parameters().find("blocks.0.mixing.0.score_bias.matrix")->value();
  BOOST_TEST(matrix.shape() == Shape({4, 9, 9}));
  fill_random(matrix, 3);
  const auto b = matrix.to_doubles();
  const auto before = weights_of(plain, 0), after = weights_of(biased, 0);
  // Index of the attention weights of head 2 for the last query of the second sequence. There are 4
  // heads, and the sequences have 9 and 3 tokens. The position of this query is 2.
  const std::size_t row = 4 * 9 * 9 + 2 * 3 * 3 + 2 * 3;
  double sum = 0;
  for (std::size_t j = 0; j < 3; ++j) sum += before[row + j] * std::exp(b[2 * 81 + 2 * 9 + j]);
  for (std::size_t j = 0; j < 3; ++j) {
    const double expected = before[row + j] * std::exp(b[2 * 81 + 2 * 9 + j]) / sum;
    BOOST_TEST(std::abs(after[row + j] - expected) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(additional_heads_add_their_attention_weights) {
  // With score_bias=heads, biased heads have additional query and key projections. From these,
  // additional attention weights are computed, which are added to the scores of the heads.
  const auto backend = make_reference_backend();
  DecoderConfig unturned = shape(kinds[1]), unbiased = shape("softmax:4/2");
  unturned.positions = unbiased.positions = Positions::none;
  Decoder plain(*backend, unbiased, 5, {.type = DType::f64});
  Decoder biased(*backend, unturned, 5, {.type = DType::f64});
  const auto own = [&](const char* name) {
    return biased.parameters().find(text("blocks.0.mixing.0.score_bias.", name))->value();
  };
  fill_random(own("query"), 3);
  fill_random(own("key"), 4);
  // x is the normalized input of layer 0. From it, plain loops compute the attention weights of the
  // additional heads.
  Tensor x;
  biased.watch = {};
  {
    const Input input = make_input(*backend, batch.tokens, batch.lengths);
    const Var embedded = biased.embedding()(input.ids, DType::f64);
    x = biased.block(0).norm1(embedded).value();
  }
  const auto rows = x.to_doubles(), q = own("query").to_doubles(), k = own("key").to_doubles();
  const auto entry = [&](const std::vector<double>& weight, std::size_t token, std::size_t out) {
    double sum = 0;
    for (std::size_t i = 0; i < 16; ++i) sum += rows[token * 16 + i] * weight[out * 16 + i];
    return sum;
  };
  const std::size_t head = 3, last = 11, begin = 9;
  std::vector<double> further;
  double total = 0;
  for (std::size_t j = begin; j <= last; ++j) {
    double score = 0;
    for (std::size_t c = 4 * head; c < 4 * head + 4; ++c)
      score += entry(q, last, c) * entry(k, j, c);
    further.push_back(std::exp(score / 2));
    total += further.back();
  }
  const auto before = weights_of(plain, 0), after = weights_of(biased, 0);
  const std::size_t row = 4 * 9 * 9 + head * 3 * 3 + 2 * 3;
  double sum = 0;
  for (std::size_t j = 0; j < 3; ++j) sum += before[row + j] * std::exp(further[j] / total);
  for (std::size_t j = 0; j < 3; ++j) {
    const double expected = before[row + j] * std::exp(further[j] / total) / sum;
    BOOST_TEST(std::abs(after[row + j] - expected) < 1e-12);
    BOOST_TEST(std::abs(after[row + j] - before[row + j]) > 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(added_biases_learn_in_a_frozen_model) {
  const auto backend = make_cpu_backend();
  for (const char* const kind : kinds) {
    for (const bool recompute : {false, true}) {
      Decoder model(*backend, shape(kind), 5);
      model.recompute = recompute;
      std::size_t added = 0;
      for (const Parameter& p : model.parameters().all()) {
        const bool own = p.name().find("score_bias") != std::string::npos;
        if (own) {
          fill_random(p.value(), 3);
          ++added;
        }
        p.freeze(!own);
      }
      BOOST_TEST(added == 2 * model.block(0).mixing.mixers()[0]->added().size());
      Tape tape;
      {
        const Recording recording(tape);
        tape.backward(model.loss_of(batch).value);
      }
      for (const Parameter& p : model.parameters().all()) {
        BOOST_TEST(static_cast<bool>(p.var().grad()) == !p.frozen(), p.name());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sequences_that_are_too_long_are_refused) {
  const auto backend = make_cpu_backend();
  Decoder model(*backend, shape(kinds[0]), 5);
  BOOST_TEST(*most_tokens(model.config()) == 9);
  BOOST_CHECK_EXCEPTION(
      model.loss_of({.tokens = std::vector<std::int32_t>(10, 1), .lengths = {10}, .targets = {}}),
      Error, [](const Error& e) {
        return std::string(e.what()).find("at most 9 tokens") != std::string::npos;
      });
  // The scores of a sequence may take at most 1 GiB in f32. For T = 8192 tokens, 4 heads have 4 T^2
  // scores, which take 1 GiB.
  BOOST_TEST(*most_tokens(shape(kinds[1])) == 8192);
  BOOST_TEST(!most_tokens(shape("softmax:4")));
  BOOST_TEST(BiasedHeads(heads_of<SoftmaxHeads>(4, 4)).heads == 4);
}

BOOST_AUTO_TEST_SUITE_END()
