#include "nn/models/decode.h"

#include <set>
#include "tests/check.h"

#include "core/contract/elementwise.h"
#include "core/error.h"

BOOST_AUTO_TEST_SUITE(decode_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

using Tokens = std::vector<std::int32_t>;

struct Fixture {
  std::shared_ptr<Backend> backend = make_cpu_backend({.threads = 2, .math = Math::exact});
  DecoderConfig config{.vocabulary = 9,
                       .width = 16,
                       .layers = 2,
                       .mixers = parse_layers("softmax:1x6,fal:1x4,softmax:1x6", 16),
                       .inner = 24,
                       .deviation = 0.7};
  Decoder decoder{*backend, config, 3};
  std::vector<Tokens> prompts{{1, 2, 3}, {4}, {5, 6, 7, 8, 0, 1, 2, 3, 4, 5}, {8, 8}};

  /// Generates tokens without a cache: recomputes everything for every token.
  Tokens slowly(Tokens prompt, std::int64_t most, std::int32_t stop = -1) {
    Tokens answer;
    for (std::int64_t i = 0; i < most; ++i) {
      const Batch batch{.tokens = prompt, .lengths = {static_cast<std::int32_t>(prompt.size())}};
      answer.push_back(predict(decoder, batch).back());
      prompt.push_back(answer.back());
      if (answer.back() == stop) break;
    }
    return answer;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(cached_and_batched_decoding_agrees_with_token_by_token_decoding, Fixture) {
  const auto answers = generate(decoder, prompts, {.most = 20});
  std::set<std::int32_t> said;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    BOOST_TEST(answers[i] == slowly(prompts[i], 20));
    said.insert(answers[i].begin(), answers[i].end());
  }
  // The test would prove little if the model always predicted the same token.
  BOOST_TEST(said.size() > 2u);
}

BOOST_FIXTURE_TEST_CASE(each_sequence_has_its_own_limit_and_ends_at_the_stop_token, Fixture) {
  const auto free = generate(decoder, prompts, {.most = 20});
  const std::int32_t stop = free[0][5];
  const auto answers = generate(decoder, prompts, {.most_each = {20, 0, 3, 1}, .stops = {stop}});
  BOOST_TEST(answers[0] == slowly(prompts[0], 20, stop));
  BOOST_TEST(answers[0].size() <= 6u);
  BOOST_TEST(answers[1].empty());
  BOOST_TEST(answers[2] == slowly(prompts[2], 3, stop));
  BOOST_TEST(answers[3].size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_sequence_that_fills_the_context_continues_without_its_oldest_tokens,
                        Fixture) {
  constexpr std::size_t context = 8, kept = 2;
  std::vector<std::vector<std::int64_t>> remaining(prompts.size());
  const auto answers = generate(
      decoder, prompts,
      {.most = 20, .context = context, .kept = kept, .dropped = [&](std::size_t i, auto count) {
         remaining[i].push_back(count);
       }});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Tokens held = prompts[i], expected;
    while (expected.size() < 20u) {
      if (held.size() > context) {
        // The sequence is longer than the context of 8 tokens, so old tokens are dropped. The first
        // 2 tokens are always kept. Of the other 6 places, half become free for new tokens. Fewer
        // places become free if fewer tokens remain to be generated.
        const std::size_t room = std::min<std::size_t>(19 - expected.size(), 3);
        Tokens shorter(held.begin(), held.begin() + kept);
        shorter.insert(shorter.end(), held.end() - (context - kept - room), held.end());
        held = shorter;
      }
      expected.push_back(slowly(held, 1)[0]);
      held.push_back(expected.back());
    }
    BOOST_TEST(answers[i] == expected, boost::test_tools::per_element());
    BOOST_TEST(remaining[i].size() >= 3u);
    for (const std::int64_t count : remaining[i]) BOOST_TEST((count >= 5 && count <= 8));
  }
  // A limit of the context that is never reached does not change the random numbers with which
  // tokens are sampled.
  const Sampling warm{.temperature = 1};
  BOOST_TEST((generate(decoder, prompts, {.most = 9, .context = 40, .sampling = warm, .seed = 4}) ==
              generate(decoder, prompts, {.most = 9, .sampling = warm, .seed = 4})));
  BOOST_CHECK_THROW(generate(decoder, prompts, {.most = 1, .context = 3, .kept = 2}), Error);
}

BOOST_FIXTURE_TEST_CASE(a_cache_accepts_no_more_tokens_than_its_capacity, Fixture) {
  KeyValueCache cache = decoder.make_cache(std::vector<std::int32_t>{3, 6});
  cache.extend(Tokens{3, 1});
  cache.extend(Tokens{0, 5});
  BOOST_CHECK_THROW(cache.extend(Tokens{1, 0}), Error);
}

BOOST_FIXTURE_TEST_CASE(scored_tokens_are_replaced_by_the_models_answers, Fixture) {
  // Depending on the sequence, outputs are requested at scattered tokens, at the first token, at
  // the last token, at adjacent tokens, or not at all.
  const std::vector<Tokens> sequences{{1, 2, 3, 4, 5, 6, 7, 8}, {4, 4}, {5, 6, 7}, {8, 8, 1, 0, 2}};
  const std::vector<Tokens> asked{{0, 3, 4, 5}, {1}, {}, {1, 4}};
  const auto said = decode_asked(decoder, sequences, asked);
  bool differs = false;  // true if any output differs from teacher forcing
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Tokens seen = sequences[i], expected;
    for (const std::int32_t output : asked[i]) {
      const auto end = static_cast<std::size_t>(output) + 1;
      const Tokens part(seen.begin(), seen.begin() + output + 1);
      expected.push_back(slowly(part, 1)[0]);
      if (end < seen.size()) seen[end] = expected.back();
      differs =
          differs || expected.back() !=
                         slowly({sequences[i].begin(), sequences[i].begin() + output + 1}, 1)[0];
    }
    BOOST_TEST(said[i] == expected, boost::test_tools::per_element());
  }
  BOOST_TEST(differs);
  const std::vector<Tokens> pair{{1, 2}};
  BOOST_CHECK_THROW(decode_asked(decoder, pair, std::vector<Tokens>{{2}}), Error);
  BOOST_CHECK_THROW(decode_asked(decoder, pair, std::vector<Tokens>{{1, 0}}), Error);
  BOOST_CHECK_THROW(decode_asked(decoder, pair, std::vector<Tokens>{}), Error);
}

BOOST_FIXTURE_TEST_CASE(decoding_continues_beyond_the_first_rope_table, Fixture) {
  DecoderConfig small = config;
  small.longest = 4;
  Decoder grown(*backend, small, 3);
  const auto far = generate(grown, prompts, {.most = 40});
  BOOST_TEST(far[0] == generate(decoder, prompts, {.most = 40})[0],
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(bf16_matrices_decode_like_the_same_numbers_in_f32, Fixture) {
  // This model is so wide that products with few rows are computed by separate kernels, as dot
  // products.
  DecoderConfig wide = config;
  wide.width = 128;
  wide.inner = 192;
  wide.mixers = parse_layers("softmax:2x64", 128);
  wide.positions = Positions::rotary;
  for (const bool tied : {false, true}) {
    wide.tied = tied;
    Decoder full(*backend, wide, 5), half(*backend, wide, 6, {.matrices = DType::bf16});
    for (std::size_t i = 0; i < full.parameters().all().size(); ++i) {
      const Tensor &x = full.parameters().all()[i].value(), &y = half.parameters().all()[i].value();
      (*backend)(Copy{.x = x, .y = y});  // rounds the parameter to bf16, the type of y
      (*backend)(Copy{.x = y, .y = x});
    }
    const Tokens text{1, 2, 3, 4, 5, 6, 7};
    const Input input = make_input(*backend, text);
    BOOST_TEST(half.logits(half.features(input)).value().to_doubles() ==
               full.logits(full.features(input)).value().to_doubles());
    BOOST_TEST(generate(half, prompts, {.most = 20}) == generate(full, prompts, {.most = 20}));
  }
}

BOOST_FIXTURE_TEST_CASE(wrong_prompts_are_refused, Fixture) {
  const std::vector<Tokens> empty{{1}, {}};
  BOOST_CHECK_THROW(generate(decoder, empty, {.most = 1}), Error);
  BOOST_CHECK_THROW(generate(decoder, prompts, {.most_each = {1, 2}}), Error);
  BOOST_TEST(generate(decoder, {}, {.most = 3}).empty());
}

BOOST_AUTO_TEST_SUITE_END()
