#include "autograd/reinforce.h"

#include <cmath>
#include <numeric>
#include "tests/check.h"

#include "apps/run/evaluation.h"
#include "apps/run/run_folder.h"
#include "autograd/catalog/heads.h"
#include "autograd/combine.h"
#include "autograd/composed_attention.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "nn/mixer_core/head_weights.h"
#include "nn/mixers/softmax.h"
#include "nn/models/decode.h"
#include "nn/models/hugging_face.h"
#include "nn/training/checkpoint.h"
#include "tests/composed_twin.h"
#include "tests/head_problem.h"
#include "tests/program.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(reinforce_test)

using namespace longhand;
using namespace longhand::nn;

// Tests of attention whose weights are increased at listed pairs of tokens: the operation, heads
// that use it, and runs with such heads.

namespace {

using Tokens = std::vector<std::int32_t>;
using Reference = std::vector<ReferencePair>;

Tensor pairs_of(Backend& backend, const Reference& pairs) {
  Tokens numbers;
  for (const auto& [row, position] : pairs) numbers.insert(numbers.end(), {row, position});
  return Tensor::from(backend, {std::ssize(pairs), 2}, numbers);
}

Tensor amounts_of(Backend& backend, DType type, const std::vector<double>& amounts) {
  return Tensor::from(backend, {std::ssize(amounts)}, master_type(type), amounts);
}

/// One pair (row of the query, position of the key) per token. The key is a random token at or
/// before the query.
Reference one_pair_a_token(const Tokens& lengths, std::uint64_t seed) {
  Rng rng(seed, Purpose::test);
  Reference pairs;
  std::int32_t row = 0;
  for (const std::int32_t length : lengths) {
    for (std::int32_t t = 0; t < length; ++t) {
      pairs.push_back({row++, static_cast<std::int32_t>(rng.below(t + 1))});
    }
  }
  return pairs;
}

/// A model of two layers. Each layer has heads with shared keys, heads with a window and a head
/// with a temperature.
struct Model {
  Model(Backend& backend, const std::string& option)
      : decoder(
            backend,
            {.vocabulary = 9,
             .width = 24,
             .layers = 2,
             .mixers = parse_layers("softmax:2/1x4{" + option + "},softmax:2x4{window=3," + option +
                                        "},softmax:1x8{temper=position," + option + "}",
                                    24),
             .inner = 24,
             .deviation = 0.7},
            3) {}

  /// Sets the amount by which each head increases weights. The heads are in the order of layers.
  void reinforce(const std::vector<double>& amounts) {
    std::size_t begin = 0;
    for (std::int64_t layer = 0; layer < decoder.config().layers; ++layer) {
      for (const AnyMixer& mixer : decoder.block(layer).mixing.mixers()) {
        const auto& heads = dynamic_cast<const SoftmaxHeads&>(*mixer);
        std::vector<double> own;
        for (std::int64_t h = 0; h < heads.heads; ++h) own.push_back(amounts[begin++]);
        heads.reinforcement().value().assign(own);
      }
    }
  }

  Decoder decoder;
};

const std::vector<double> some_amounts{0.75, 0, 1.5, 0.5, 2, 0, 0, 3, 0.625, 1};

}  // namespace

BOOST_AUTO_TEST_CASE(reinforced_attention_agrees_with_weights_edited_entry_by_entry) {
  check_composed(
      "reinforced_attention", [](const catalog::Call& c) -> std::vector<catalog::Output> {
        const ScoreVars s = catalog::windowed_call(c);
        const Segments keys = s.keys ? s.keys : s.queries;
        const Tokens pairs = c.in("pairs").value().to_ints();
        const std::vector<double> amounts = c.in("amounts").value().to_doubles();
        const double threshold = c.number("threshold");
        const EditWeights edit = [&](const Var& w, std::int64_t sequence) {
          const auto at = static_cast<std::size_t>(sequence);
          const std::int64_t queries = w.shape()[1], count = w.shape()[2];
          std::vector<double> weights = w.value().to_doubles();
          for (std::size_t n = 0; n < pairs.size(); n += 2) {
            const std::int64_t t = pairs[n] - s.queries.begins()[at], j = pairs[n + 1];
            if (t < 0 || t >= queries || j > count - queries + t) continue;
            if (s.window > 0 && j <= count - queries + t - s.window) continue;
            for (std::size_t h = 0; h < amounts.size(); ++h) {
              double& weight =
                  weights[(h * static_cast<std::size_t>(queries) + static_cast<std::size_t>(t)) *
                              static_cast<std::size_t>(count) +
                          static_cast<std::size_t>(j)];
              if (weight > threshold) weight += amounts[h];
            }
          }
          return Var(Tensor::from(w.backend(), w.shape(), w.value().dtype(), weights));
        };
        return {{"y",
                 composed_attention(s, catalog::value_call(c, s), catalog::softmax_call(c), edit)}};
      });
}

BOOST_AUTO_TEST_CASE(heads_that_add_nothing_keep_every_bit) {
  const Tokens lengths{70, 1, 0, 9, 300};
  for (const DType type : {DType::f32, DType::bf16}) {
    const auto backend = make_cpu_backend();
    const HeadProblem p(*backend, type, lengths, 4, 2, 20, 12);
    const Tensor pairs = pairs_of(*backend, one_pair_a_token(lengths, 5));
    const auto y = [&](const std::vector<double>& amounts, double threshold) {
      return reinforced_attention(p.scores(), p.values(),
                                  {pairs, amounts_of(*backend, type, amounts), threshold})
          .to_doubles();
    };
    const std::vector<double> plain = attention(p.scores(), p.values()).value().to_doubles();
    BOOST_TEST((y({0, 0, 0, 0}, 0) == plain));
    BOOST_TEST((y({1, 1, 1, 1}, 1) == plain));
    const std::vector<double> one = y({0, 0, 2, 0}, 0);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      if (i / 12 % 4 != 2) BOOST_REQUIRE(one[i] == plain[i]);
    }
    BOOST_TEST((one != plain));
  }
}

// Weights above the threshold are increased. In f32, a weight that underflows to 0 still counts as
// larger than the threshold 0. A weight that is rounded to 1 does not exceed the threshold 1.
BOOST_AUTO_TEST_CASE(a_threshold_of_0_reinforces_every_pair_and_1_none) {
  const Tokens lengths{40, 3};
  const Reference looks = one_pair_a_token(lengths, 6);
  for (const char* const name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const HeadProblem p(*backend, DType::f32, lengths, 2, 1, 8, 3, 4,
                        40);  // with the deviation 40, scores reach several thousand
    const Tensor pairs = pairs_of(*backend, looks);
    const std::vector<double> plain = attention(p.scores(), p.values()).value().to_doubles();
    const auto y = [&](double threshold) {
      const Tensor amounts = amounts_of(*backend, DType::f32, {0.5, 0.5});
      return reinforced_attention(p.scores(), p.values(), {pairs, amounts, threshold}).to_doubles();
    };
    BOOST_TEST((y(1) == plain));
    BOOST_TEST((y(7) == plain));
    const std::vector<double> all = y(0), v = p.v.to_doubles();
    double worst = 0;
    for (const auto& [row, position] : looks) {
      const std::size_t key = static_cast<std::size_t>(position + (row < 40 ? 0 : 40));
      for (std::size_t i = 0; i < 6; ++i) {
        const std::size_t at = static_cast<std::size_t>(row) * 6 + i;
        worst = std::max(worst, std::abs(all[at] - plain[at] - 0.5 * v[key * 3 + i % 3]));
      }
    }
    BOOST_TEST(worst < 1e-4);  // values have the standard deviation 40
  }
}

BOOST_AUTO_TEST_CASE(pairs_outside_the_visible_keys_add_nothing) {
  const Tokens lengths{5, 4};
  for (const char* const name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const HeadProblem p(*backend, DType::f32, lengths, 1, 1, 4, 4);
    constexpr std::int32_t far = 2'000'000'000;
    const Tensor pairs = pairs_of(
        *backend, {{-far, 0}, {-1, 0}, {2, -1}, {2, 3}, {3, far}, {5, 1}, {9, 0}, {far, far}});
    const Tensor y = reinforced_attention(p.scores(), p.values(),
                                          {pairs, amounts_of(*backend, DType::f32, {1}), 0});
    BOOST_TEST((y.to_doubles() == attention(p.scores(), p.values()).value().to_doubles()));
  }
}

BOOST_AUTO_TEST_CASE(arguments_that_do_not_fit_are_refused) {
  const auto backend = make_reference_backend();
  const HeadProblem p(*backend, DType::f32, {5, 4}, 2, 1, 4, 4);
  const auto run = [&](const Tensor& pairs, const Tensor& amounts, double threshold) {
    reinforced_attention(p.scores(), p.values(), {pairs, amounts, threshold});
  };
  const Tensor pairs = pairs_of(*backend, {{0, 0}}), two = amounts_of(*backend, DType::f32, {1, 1});
  BOOST_CHECK_NO_THROW(run(pairs, two, 0));
  expect_refusal([&] { run(two, two, 0); }, "reinforce: pairs: expected [1, 2] i32, got [2] f32");
  expect_refusal([&] { run(pairs, amounts_of(*backend, DType::f32, {1}), 0); },
                 "reinforce: amounts: expected [2] f32, got [1] f32");
  expect_refusal([&] { run(pairs, two, -0.1); },
                 "reinforce: threshold: expected at least 0, got -0.1");
  Tape tape;
  const Recording recording(tape);
  expect_refusal(
      [&] {
        reinforced_attention(p.scores(true), p.values(), {pairs, two, 0});
      },
      "reinforced attention has no gradient");
  // The reference of a batch is a list of pairs (row, position). The row is the index of a query
  // token among all tokens of the batch. The position is the index of a key token in the same
  // sequence, which must exist and must not be after the query token.
  const Tokens tokens(9, 1), lengths{5, 4};
  const auto place = [&](const Reference& reference) {
    make_input(*backend, tokens, lengths, {}, reference);
  };
  BOOST_CHECK_NO_THROW(place({{4, 0}, {4, 4}, {5, 0}}));
  expect_refusal(
      [&] {
        place({{5, 1}});
      },
      "expected a reference to a token at or before index 0, got index 1");
  expect_refusal(
      [&] {
        place({{4, 0}, {3, 0}});
      },
      "reference: expected (row, position) pairs sorted by row, with rows below 9, got row 3");
  expect_refusal(
      [&] {
        place({{9, 0}});
      },
      "reference: expected (row, position) pairs sorted by row, with rows below 9, got row 9");
}

// The weights that look() returns must give the outputs of the heads. The projection of the first
// group of heads has columns for 2 queries, 1 key and 1 value, each of width 4.
BOOST_AUTO_TEST_CASE(shown_weights_are_those_that_were_used) {
  const auto backend = make_reference_backend();
  Model model(*backend, "reinforce=0");
  model.reinforce(some_amounts);
  const Tokens tokens{1, 2, 3, 4, 5, 6, 7, 8}, lengths{5, 3};
  const Reference pairs{{2, 0}, {4, 1}, {4, 4}, {6, 0}, {7, 1}};
  const Input input = make_input(*backend, tokens, lengths, {}, pairs);
  std::map<std::string, std::vector<double>> seen;
  model.decoder.watch = [&](const std::string& name, const Tensor& x) {
    if (is_float(x.dtype())) seen[name] = x.to_doubles();
  };
  model.decoder.features(input);
  model.decoder.watch = {};
  const auto views = model.decoder.look(input);
  const auto& projection = seen.at("blocks.0.mixing.projection");
  const auto& heads = seen.at("blocks.0.mixing.heads");
  const std::size_t columns = projection.size() / 8;
  double worst = 0, most = 0;
  for (std::int64_t sequence = 0, begin = 0; sequence < 2; ++sequence) {
    const std::int64_t n = lengths[static_cast<std::size_t>(sequence)];
    for (std::int64_t head = 0; head < 2; ++head) {
      const auto weights = head_weights(views[0][0], input.segments, sequence, head).to_doubles();
      for (std::int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += weights[static_cast<std::size_t>(i * n + j)];
        most = std::max(most, sum);
        for (std::int64_t c = 0; c < 4; ++c) {
          double y = 0;
          for (std::int64_t j = 0; j < n; ++j) {
            y += weights[static_cast<std::size_t>(i * n + j)] *
                 projection[static_cast<std::size_t>(begin + j) * columns + 12 +
                            static_cast<std::size_t>(c)];
          }
          const auto at = static_cast<std::size_t>((begin + i) * 24 + head * 4 + c);
          worst = std::max(worst, std::abs(y - heads[at]));
        }
      }
    }
    begin += n;
  }
  BOOST_TEST(worst < 1e-5);
  BOOST_TEST(most > 1.5);  // the increased weights of some row sum to more than 1.5
}

BOOST_AUTO_TEST_CASE(models_of_plain_heads_are_unchanged) {
  const auto backend = make_cpu_backend({.threads = 2});
  Model plain(*backend, "beta=1"), told(*backend, "reinforce=0");
  BOOST_TEST(!plain.decoder.wants_reference());
  BOOST_TEST(told.decoder.wants_reference());
  // Reinforced heads add one untrained parameter per head, the amount by which weights are
  // increased. All other parameters have the same names and values.
  std::size_t more = 0;
  for (const Parameter& p : told.decoder.parameters().all()) {
    const Parameter* const same = plain.decoder.parameters().find(p.name());
    if (same) {
      BOOST_TEST((same->value().to_doubles() == p.value().to_doubles()));
      continue;
    }
    BOOST_TEST(p.name().ends_with(".reinforcement"));
    BOOST_TEST(p.frozen());
    more += static_cast<std::size_t>(p.value().size());
  }
  BOOST_TEST(more == some_amounts.size());
  told.reinforce(some_amounts);
  const Tokens tokens{1, 2, 3, 4, 5, 6, 7, 8}, lengths{5, 3};
  const auto features = [&](Model& model, const Reference& reference) {
    return model.decoder.features(make_input(*backend, tokens, lengths, {}, reference))
        .value()
        .to_doubles();
  };
  const Reference pairs{{2, 0}, {4, 1}, {4, 4}, {7, 1}};
  BOOST_TEST((features(told, {}) == features(plain, {})));
  BOOST_TEST((features(plain, pairs) == features(plain, {})));
  const std::vector<double> changed = features(told, pairs), before = features(plain, {});
  // A row changes only if `pairs` names it or an earlier row of its sequence.
  for (std::size_t row = 0; row < 8; ++row) {
    const auto same = [&] {
      return std::equal(&changed[row * 24], &changed[row * 24] + 24, &before[row * 24]);
    };
    BOOST_TEST(same() == (row < 2 || row == 5 || row == 6));
  }
}

BOOST_AUTO_TEST_CASE(cached_and_batched_decoding_agrees_with_token_by_token_decoding) {
  const std::vector<Tokens> sequences{
      {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4}, {5}, {8, 7, 6, 5, 4, 3, 2}};
  const std::vector<Tokens> asked{{4, 5, 6, 8, 10}, {0}, {2, 3, 4, 5}};
  std::vector<Reference> references;
  for (const Tokens& sequence : sequences) {
    references.push_back(
        one_pair_a_token({static_cast<std::int32_t>(sequence.size())}, sequence.size()));
  }
  for (const Math math : {Math::exact, Math::fast, Math::bf16}) {
    const auto backend = make_cpu_backend({.threads = 2, .math = math});
    Model model(*backend, "reinforce=0.05");
    model.reinforce(some_amounts);
    // Generates without a cache: the whole sequence is recomputed for every output.
    const auto slowly = [&](bool told) {
      std::vector<Tokens> said;
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        Tokens read = sequences[i];
        said.emplace_back();
        for (const std::int32_t output : asked[i]) {
          const Batch batch{.tokens = read,
                            .lengths = {static_cast<std::int32_t>(read.size())},
                            .reference = told ? references[i] : Reference()};
          const std::int32_t best = predict(model.decoder, batch)[static_cast<std::size_t>(output)];
          said.back().push_back(best);
          if (output + 1 < std::ssize(read)) read[static_cast<std::size_t>(output) + 1] = best;
        }
      }
      return said;
    };
    BOOST_TEST_CONTEXT(name_of(math)) {
      BOOST_TEST((decode_asked(model.decoder, sequences, asked, 0, references) == slowly(true)));
      BOOST_TEST((decode_asked(model.decoder, sequences, asked) == slowly(false)));
      BOOST_TEST((slowly(true) != slowly(false)));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_has_the_amounts_and_a_list_of_heads_the_threshold) {
  const auto backend = make_cpu_backend({.threads = 1});
  const TemporaryFolder folder;
  Model saved(*backend, "reinforce=0.05"), loaded(*backend, "reinforce=0.05");
  saved.reinforce(some_amounts);
  save_checkpoint(folder / "c", {}, saved.decoder.parameters());
  load_checkpoint(folder / "c", loaded.decoder.parameters());
  std::vector<double> amounts;
  for (const Parameter& p : loaded.decoder.parameters().all()) {
    if (!p.name().ends_with(".reinforcement")) continue;
    BOOST_TEST(p.frozen());
    for (const double amount : p.value().to_doubles()) amounts.push_back(amount);
  }
  BOOST_TEST((amounts == some_amounts));

  const std::string heads = text_of(saved.decoder.config().mixers);
  BOOST_TEST(heads.find("reinforce=0.05") != std::string::npos, heads);
  BOOST_TEST(text_of(parse_layers(heads, 24)) == heads);
  BOOST_TEST(text_of(parse_layers("softmax:2x8{reinforce=none}", 16)) == "softmax:2x8");
  expect_refusal([] { parse_layers("softmax:2x8{reinforce=1.5}", 16); },
                 "reinforce: expected none or a number from 0 to 1");
}

BOOST_AUTO_TEST_CASE(reinforcement_is_neither_trained_nor_exported) {
  const auto backend = make_cpu_backend({.threads = 1});
  Model model(*backend, "reinforce=0.05");
  const Batch batch{.tokens = {1, 2, 3}, .lengths = {3}, .targets = {2, 3, 1}};
  BOOST_CHECK_NO_THROW(model.decoder.loss_of(batch));
  {
    Tape tape;
    const Recording recording(tape);
    expect_refusal([&] { model.decoder.loss_of(batch); }, "reinforced attention has no gradient");
  }
  const TemporaryFolder folder;
  expect_refusal([&] { export_model(model.decoder, folder / "out"); },
                 "expected plain attention, got reinforced heads");
}

// Creates runs of the task reversal. Their heads increase weights at the pairs of tokens in the
// reference of this task.
BOOST_FIXTURE_TEST_CASE(a_run_is_scored_with_its_tasks_reference, Program) {
  const auto make = [&](const std::string& name, app::Config config, double amount) {
    for (const auto& [key, value] : {std::pair{"model.width", "16"},
                                     {"model.layers", "1"},
                                     {"model.heads", "softmax:2"},
                                     {"model.reinforce", "0"},
                                     {"compute.threads", "1"}}) {
      config.set(key, value);
    }
    const auto backend = make_cpu_backend({.threads = 1});
    const auto task = config.task();
    Decoder model(*backend, config.model(*task), 1);
    model.block(0).mixer<SoftmaxHeads>().reinforcement().value().assign(
        std::vector<double>{amount, 0});
    app::RunFolder::create(path(name), config).open(&model.parameters());
  };
  make("none", app::Config("reversal"), 0);
  make("some", app::Config("reversal"), 5);
  const auto loss = [&](const std::string& name) {
    const app::LoadedRun run = app::load_run(path(name));
    return app::evaluate_loss(*run.model, *run.task, {.samples = 30});
  };
  BOOST_TEST(loss("some") != loss("none"));
  for (const std::string reading : {"forced", "decoded"}) {
    const Json scored = json("eval some --json --samples 20 --reading " + reading);
    BOOST_TEST(scored["rows"].size() > 0u);
  }
  refuses(1, "generate some --prompt ab=", "some: expected a run without reinforced heads");
  refuses(1, "train --task reversal --reinforce 0 --steps 1 --out trained",
          "model.reinforce: reinforced heads have no gradient");
  BOOST_TEST(!std::filesystem::exists(path("trained")));
  refuses(1, "export some --out hf", "expected plain attention, got reinforced heads");

  std::ofstream(path("text")) << std::string(2000, 'a');
  app::Config text("text");
  text.set("task.text", path("text"));
  text.set("task.length", "20");
  make("book", text, 1);
  refuses(1, "eval book --samples 5", "reinforced heads: expected reference attention");
  refuses(1, "chat book", "book: expected a run without reinforced heads");
}

BOOST_AUTO_TEST_SUITE_END()
