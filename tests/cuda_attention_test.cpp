#include "tests/check.h"

#include "autograd/deltaformer.h"
#include "autograd/tolerance.h"
#include "cuda/emulator/backend.h"
#include "tests/head_problem.h"
#include "tests/random_tensor.h"
#include "tests/recorded.h"

BOOST_AUTO_TEST_SUITE(cuda_attention_test)

using namespace longhand;

// Tests the CUDA attention kernels on the emulated device, for sequences longer than a tile of keys
// and heads wider than a slice of columns. Tiles then wait for the results of other tiles, and each
// score is a sum over several slices.

namespace {

struct Setting {
  DType activations;
  Math math;
  double close;  // maximum error of an entry, relative to 1 + its absolute value
};
constexpr Setting settings[] = {{DType::f32, Math::exact, 0x1p-21},
                                {DType::f32, Math::fast, 0x1p-8},  // products are computed in TF32
                                {DType::f32, Math::bf16, 0x1p-6},
                                {DType::bf16, Math::fast, 0x1p-6}};

using Tensors = std::vector<std::vector<double>>;

/// The maximum error of a number is `close` times the largest magnitude of its tensor, at least 1.
void require_close(const Tensors& got, const Tensors& expected, double close) {
  BOOST_REQUIRE_EQUAL(expected.size(), got.size());
  for (std::size_t x = 0; x < got.size(); ++x) {
    BOOST_REQUIRE_EQUAL(expected[x].size(), got[x].size());
    double largest = 1;
    for (const double value : expected[x]) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < got[x].size(); ++i) {
      BOOST_REQUIRE_SMALL(got[x][i] - expected[x][i], close * largest);
    }
  }
}

struct FewQueries {
  std::vector<std::int32_t> queries, keys;
  std::int64_t heads, key_heads, width;
};

/// Returns the outputs of attention and the logarithms of its softmax denominators. Options of
/// attention: none if form = 0; multiplier, decay and sinks if form = 1; a window if form = 2;
/// multiplier and sinks but no causal mask if form = 3.
std::vector<double> attend(Backend& on, DType type, const FewQueries& shape, int form) {
  const HeadProblem p(on, type, shape.keys, shape.heads, shape.key_heads, shape.width, shape.width);
  const Segments queries(on, shape.queries);
  // The numbers are rounded to bf16, so the inputs are equal for all activation types.
  const auto rounded = [&](const Tensor& x) {
    std::vector<double> values = x.to_doubles();
    for (double& value : values) value = static_cast<float>(bf16(static_cast<float>(value)));
    return Tensor::from(on, x.shape(), type, values);
  };
  const DType master = master_type(type);
  Scores scores{.q = {rounded(p.q).slice(0, queries.tokens()), 0, shape.heads, shape.width},
                .k = {rounded(p.k), 0, shape.key_heads, shape.width},
                .queries = queries,
                .keys = p.segments,
                .scale = 0.7 / std::sqrt(static_cast<double>(shape.width))};
  SoftmaxRule rule;
  if (form == 1 || form == 3) {
    scores.multiplier = random_tensor(on, {queries.tokens(), shape.heads}, master, 7);
    rule.sink = random_tensor(on, {shape.heads}, master, 7);
  }
  if (form == 1) scores.decay = random_tensor(on, {p.k.rows(), shape.heads}, master, 7);
  scores.causal = form != 3;
  if (form == 2) scores.window = 140;
  const Heads y{Tensor(on, {queries.tokens(), shape.heads * shape.width}, type), 0, shape.heads,
                shape.width};
  rule.log_denominator = Tensor(on, {queries.tokens(), shape.heads}, master);
  on(Attention{.scores = scores,
               .rule = rule,
               .v = {rounded(p.v), 0, shape.key_heads, shape.width},
               .y = y});
  std::vector<double> all = y.data.to_doubles();
  const std::vector<double> sums = rule.log_denominator.to_doubles();
  all.insert(all.end(), sums.begin(), sums.end());
  return all;
}

/// Compares an operation with the reference, in its large cases with at least `least` and at most
/// `most` tokens. `turn` counts the cases. It determines the activation type, the math mode and the
/// kind of emulated tensor cores of each case.
void compare_large_cases(const char* name, std::size_t& turn, double least = 0,
                         double most = std::numeric_limits<double>::infinity()) {
  const auto reference = make_reference_backend();
  const catalog::Operation& operation = catalog::find(name);
  Rng rng(3, Purpose::test);
  const std::vector<catalog::Case> cases = operation.large(rng);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    double tokens = 0;
    for (const double length : cases[i].inputs.at("lengths").values) tokens += length;
    if (tokens < least || tokens > most) continue;
    const Setting& s = settings[turn++ % std::size(settings)];
    const auto backend = make_emulated_cuda_backend({.math = s.math});
    const double unit = tolerance::unit(operation, s.activations, s.math, true);
    tolerance::Standard standard(operation, {cases[i]}, *reference);
    emulator::set_tensor_cores(turn % 3 == 0 ? emulator::TensorCores::sm_80
                                             : emulator::TensorCores::sm_90);
    const auto used = standard.compare(*backend, s.activations, unit);
    emulator::set_tensor_cores(emulator::TensorCores::plain);
    BOOST_TEST_CONTEXT(name << ", case " << i << ", " << s.activations << ", " << name_of(s.math)
                            << ": " << used.where) {
      BOOST_TEST(used.used <= 1.0);
    }
  }
}

}  // namespace

// Compares attention operations with the reference. Their test cases use four settings (activation
// type and math mode) in turn. Thread blocks are interleaved. If they ran one after another, the
// first block would compute all tiles, and no tile would wait for another block.
BOOST_AUTO_TEST_CASE(long_sequences_and_wide_heads_agree_with_the_reference) {
  const emulator::InterleavedBlocks interleaved;
  std::size_t turn = 0;
  for (const char* name : {"attention", "reinforced_attention", "chacal", "deltaformer", "fal"}) {
    compare_large_cases(name, turn);
  }
}

// In the kernels of stick-breaking, TRA, entmax and sigmoid attention, neighbouring threads share
// the keys of a query. In sequences of more than 64 tokens, each of these threads has keys.
BOOST_AUTO_TEST_CASE(rules_with_many_keys_agree_with_the_reference) {
  const emulator::InterleavedBlocks interleaved;
  std::size_t turn = 0;
  for (const char* name :
       {"stick_attention", "tra_attention", "entmax_attention", "sigmoid_attention"}) {
    compare_large_cases(name, turn, 65, 170);
  }
}

// In any order of thread blocks and threads, even if blocks alternate, every wait for another block
// ends and the results are the same.
BOOST_AUTO_TEST_CASE(the_order_of_blocks_changes_no_bit) {
  const auto backend = make_emulated_cuda_backend({.math = Math::bf16});
  for (const char* name : {"attention", "reinforced_attention", "chacal", "deltaformer", "fal",
                           "stick_attention", "tra_attention", "entmax_attention"}) {
    const catalog::Operation& operation = catalog::find(name);
    Rng rng(5, Purpose::test);
    // A case with 150 tokens, which the kernels divide into three tiles.
    const catalog::Case values = operation.large(rng).front();
    const auto in_order = [&](emulator::Order order) {
      emulator::set_order(order, 1);
      auto results = tolerance::run(operation, values, *backend, DType::f32);
      emulator::set_order(emulator::Order::forward);
      return results;
    };
    const auto forward = in_order(emulator::Order::forward);
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST((in_order(emulator::Order::backward) == forward));
      BOOST_TEST((in_order(emulator::Order::interleaved) == forward));
    }
  }
}

BOOST_AUTO_TEST_CASE(gamma_zero_is_softmax_attention_bit_for_bit) {
  for (const Setting& s : settings) {
    const auto backend = make_emulated_cuda_backend({.math = s.math});
    const auto chained = [&](const HeadProblem& p, double gamma) {
      const Var g(Tensor::from(*backend, {1}, DType::f32, std::vector<double>{gamma}));
      return chacal(p.scores(), p.values(), g).value().to_doubles();
    };
    for (const auto& [heads, key_heads, width] :
         {std::array<std::int64_t, 3>{1, 1, 16}, {4, 2, 5}, {1, 1, 130}}) {
      const HeadProblem p(*backend, s.activations, {100, 1, 33}, heads, key_heads, width, width);
      const auto softmax = attention(p.scores(), p.values()).value().to_doubles();
      BOOST_TEST_CONTEXT(s.activations << ", " << name_of(s.math) << ", width " << width) {
        BOOST_TEST((softmax == chained(p, 0)));
        BOOST_TEST((softmax != chained(p, 0.5)));
      }
    }
  }
}

// For long sequences, a thread block processes a tile of 128 queries. For batches with short
// average length, it processes a tile of 64.
BOOST_AUTO_TEST_CASE(tiles_of_128_queries_give_the_bits_of_tiles_of_64) {
  constexpr std::int32_t length = 270;
  const emulator::Order orders[] = {emulator::Order::forward, emulator::Order::backward,
                                    emulator::Order::shuffled};
  std::size_t turn = 0;
  for (const Setting& s : {settings[1], settings[2], settings[3]}) {
    const auto backend = make_emulated_cuda_backend({.math = s.math});
    for (const std::int64_t width : {16, 40, 72}) {
      const HeadProblem p(*backend, s.activations, {length, 1, 1}, 1, 1, width, width);
      ScoreVars mixed = p.scores();
      RuleVars rule;
      if (turn % 3 == 1) mixed.window = 150;
      const Tensor more = random_tensor(*backend, {length + 2, 1}, DType::f32, 7, 0.5);
      if (turn % 3 == 2) {
        mixed.multiplier = more;
        mixed.decay = more;
        rule = SoftmaxVars{random_tensor(*backend, {1}, DType::f32, 7)};
      }
      ScoreVars alone = mixed;
      if (turn % 3 == 2) alone.multiplier = more.slice(0, length);
      alone.q = all_columns(Var(p.q.slice(0, length)), 1);
      alone.queries = Segments(*backend, std::vector<std::int32_t>{length});
      const std::vector<double> narrow =
          attention(mixed, p.values(), rule).value().slice(0, length).to_doubles();
      emulator::set_order(orders[turn++ % 3], 1);
      const std::vector<double> wide = attention(alone, p.values(), rule).value().to_doubles();
      emulator::set_order(emulator::Order::forward);
      BOOST_TEST_CONTEXT(s.activations << ", " << name_of(s.math) << ", width " << width) {
        BOOST_TEST((wide == narrow));
      }
    }
  }
}

// If a multiprocessor has less shared memory, thread blocks process fewer queries or fewer tiles at
// once.
BOOST_AUTO_TEST_CASE(devices_with_less_shared_memory_give_the_same_bits) {
  struct Shape {
    Setting setting;
    std::int32_t length, width;
  };
  // Shapes for which the choice of the kernel depends on the device's shared memory.
  const Shape shapes[] = {{settings[0], 70, 32}, {settings[1], 256, 32}, {settings[3], 256, 64}};
  for (const Shape& shape : shapes) {
    const Setting s = shape.setting;
    const std::int32_t length = shape.length, width = shape.width;
    for (const bool shifted : {false, true}) {
      const auto results = [&](int major, int minor) {
        emulator::set_capability(major, minor);
        const auto backend = make_emulated_cuda_backend({.math = s.math});
        emulator::set_capability(9, 0);
        const HeadProblem p(*backend, s.activations, {length}, 1, 1, width, width);
        ScoreVars scores = p.scores(true);
        if (shifted) scores.decay = Var(random_tensor(*backend, {length, 1}, DType::f32, 7), true);
        const HeadVars values = p.values(true);
        Tape tape;
        const Var y = recorded(tape, [&] { return attention(scores, values); });
        tape.backward(y, random_tensor(*backend, {length, width}, s.activations, 8));
        std::vector<std::vector<double>> all{y.value().to_doubles()};
        for (const Var& x : {scores.q.data, scores.k.data, values.data}) {
          all.push_back(x.grad().to_doubles());
        }
        return all;
      };
      BOOST_TEST_CONTEXT(s.activations << ", " << name_of(s.math) << ", width " << width) {
        BOOST_TEST((results(8, 9) == results(9, 0)));
      }
    }
  }
}

// There is a separate kernel for each combination of product type, slice width (columns of a head),
// number of bands (64 queries each) and form of the scores.
BOOST_AUTO_TEST_CASE(every_instance_of_a_kernel_agrees_with_the_reference) {
  const auto reference = make_reference_backend();
  const auto results = [](Backend& on, DType type, std::int64_t width, bool shifted) {
    Tensors all;
    const auto whole = [&](std::int32_t length, const auto& attend, bool gradients) {
      const HeadProblem p(on, type, {length}, 1, 1, width, width);
      ScoreVars s = p.scores(gradients);
      if (shifted) s.decay = Var(random_tensor(on, {length, 1}, type, 7), gradients);
      const HeadVars values = p.values(gradients);
      Tape tape;
      const Var y = recorded(tape, [&] { return attend(s, values); });
      all.push_back(y.value().to_doubles());
      if (!gradients) return;
      tape.backward(y, random_tensor(on, {length, width}, type, 8));
      for (const Var& x : {s.q.data, s.k.data, values.data}) {
        all.push_back(x.grad().to_doubles());
      }
      if (shifted) all.push_back(s.decay.grad().to_doubles());
    };
    const Var gamma(Tensor::from(on, {1}, type, std::vector<double>{0.5}));
    const auto softmax = [](const ScoreVars& s, const HeadVars& v) { return attention(s, v); };
    whole(67, softmax, true);
    whole(
        67, [&](const ScoreVars& s, const HeadVars& v) { return chacal(s, v, gamma); }, true);
    if (!shifted) {
      whole(
          67,
          [&](const ScoreVars& s, const HeadVars& v) {
            const Var gain(random_tensor(on, {67, 1}, type, 9, 0.5));
            return deltaformer({.q = s.q, .k = s.k, .v = v, .gain = gain, .queries = s.queries});
          },
          true);
    }
    // 256 tokens: thread blocks process two bands of 64 queries, unless heads are wide
    if (width <= 128) whole(256, softmax, false);
    if (width <= 128 && !shifted) {
      whole(
          256,
          [](ScoreVars s, const HeadVars& v) {
            s.causal = false;
            return attention(s, v);
          },
          false);
    }
    whole(
        258,  // number of tokens; the keys are divided among several thread blocks
        [&](ScoreVars s, const HeadVars& v) {
          s.keys = s.queries;
          s.queries = Segments(on, std::vector<std::int32_t>{2});
          s.q = all_columns(Var(s.q.data.value().slice(0, 2)), 1);
          return attention(s, v);
        },
        false);
    return all;
  };
  for (const Setting& setting : {settings[0], settings[1], settings[2]}) {
    const auto backend = make_emulated_cuda_backend({.math = setting.math});
    for (const std::int64_t width : {16, 40, 72, 160}) {
      for (const bool shifted : {false, true}) {
        const Tensors expected = results(*reference, DType::f64, width, shifted);
        const Tensors got = results(*backend, DType::f32, width, shifted);
        BOOST_TEST_CONTEXT(name_of(setting.math)
                           << ", width " << width << ", shifted " << shifted) {
          require_close(got, expected, 4 * setting.close);
        }
      }
    }
  }
}

// A thread block computes at most 768 columns of a result. The heads of queries and keys, or those
// of values, have more columns in this test.
BOOST_AUTO_TEST_CASE(heads_of_more_columns_than_a_block_agree_with_the_reference) {
  const auto reference = make_reference_backend();
  const auto results = [](Backend& on, DType type, std::int64_t width, std::int64_t v_width) {
    const HeadProblem p(on, type, {20, 3}, 2, 1, width, v_width);
    ScoreVars s = p.scores(true);
    const bool shifted = width > v_width;
    s.multiplier = Var(random_tensor(on, {23, 2}, type, 7), true);
    if (shifted) s.decay = Var(random_tensor(on, {23, 2}, type, 8), true);
    const HeadVars values = p.values(true);
    const Var sink(random_tensor(on, {2}, type, 9), true);
    Tape tape;
    const Var y = recorded(tape, [&] { return attention(s, values, SoftmaxVars{sink}); });
    tape.backward(y, random_tensor(on, {23, 2 * v_width}, type, 8));
    Tensors all{y.value().to_doubles()};
    std::vector<Var> inputs{s.q.data, s.k.data, values.data, s.multiplier, sink};
    if (shifted) inputs.push_back(s.decay);
    for (const Var& x : inputs) all.push_back(x.grad().to_doubles());
    return all;
  };
  for (const Setting& setting : {settings[0], settings[2]}) {
    const auto backend = make_emulated_cuda_backend({.math = setting.math});
    for (const auto& [width, v_width] :
         {std::array<std::int64_t, 2>{776, 16}, std::array<std::int64_t, 2>{136, 840}}) {
      const Tensors expected = results(*reference, DType::f64, width, v_width);
      const Tensors got = results(*backend, DType::f32, width, v_width);
      BOOST_TEST_CONTEXT(name_of(setting.math) << ", widths " << width << " and " << v_width) {
        require_close(got, expected, 8 * setting.close);
      }
    }
  }
}

// If there are few queries and many keys, each thread block processes a part of the keys. Some
// parts are empty.
BOOST_AUTO_TEST_CASE(keys_in_parts_agree_with_the_reference_in_any_order) {
  const FewQueries shapes[] = {{{1, 3, 1, 20, 0}, {700, 5, 1, 130, 9}, 4, 2, 16},
                               {{2}, {450}, 1, 1, 5},
                               {{1, 1}, {333, 200}, 1, 1, 130},
                               {{7}, {400}, 2, 1, 40}};
  const auto reference = make_reference_backend();
  std::size_t turn = 0;
  for (const FewQueries& shape : shapes) {
    for (const int form : {0, 1, 2, 3}) {
      const Setting& s = settings[turn++ % std::size(settings)];
      const auto backend = make_emulated_cuda_backend({.math = s.math});
      const std::vector<double> expected = attend(*reference, DType::f64, shape, form);
      const std::vector<double> got = attend(*backend, s.activations, shape, form);
      BOOST_TEST_CONTEXT(shape.keys.size()
                         << " segments, width " << shape.width << ", form " << form << ", "
                         << s.activations << ", " << name_of(s.math)) {
        BOOST_REQUIRE_EQUAL(expected.size(), got.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          BOOST_REQUIRE_SMALL(got[i] - expected[i], s.close * (1 + std::abs(expected[i])));
        }
        for (const auto order : {emulator::Order::backward, emulator::Order::shuffled}) {
          emulator::set_order(order, 1);
          BOOST_TEST((attend(*backend, s.activations, shape, form) == got));
        }
        emulator::set_order(emulator::Order::forward);
      }
    }
  }
}

// An operation that is recorded as a CUDA graph always divides the keys into the same number of
// parts. The lengths at the time of each run determine which keys are in which part.
BOOST_AUTO_TEST_CASE(keys_in_parts_repeat_with_other_lengths) {
  const auto backend = make_emulated_cuda_backend({.math = Math::bf16});
  const HeadProblem p(*backend, DType::bf16, {300, 300}, 1, 1, 16, 16);
  const std::vector<std::int32_t> begins{0, 300}, one{1, 1};
  const Segments queries(*backend, one);
  const Tensor q = p.q.slice(0, 2);
  const auto attend = [&](const Segments& keys, const Tensor& y) {
    (*backend)(Attention{.scores = {.q = {q, 0, 1, 16},
                                    .k = {p.k, 0, 1, 16},
                                    .queries = queries,
                                    .keys = keys,
                                    .scale = 0.3},
                         .rule = {},
                         .v = {p.v, 0, 1, 16},
                         .y = {y, 0, 1, 16}});
  };
  const Tensor y(*backend, {2, 16}, DType::bf16), direct(*backend, {2, 16}, DType::bf16);
  std::vector<std::int32_t> lengths{257, 64};
  const Segments keys(*backend, begins, lengths);
  const auto repeat = backend->repeat();
  for (int turn = 0; turn < 4; ++turn) {
    const bool recorded = repeat->run([&] { attend(keys, y); });
    BOOST_TEST(recorded == (turn >= 2));
    attend(Segments(*backend, begins, lengths), direct);
    BOOST_TEST((y.to_doubles() == direct.to_doubles()));
    lengths = {300 - 100 * turn, 1 + 60 * turn};
    backend->upload(keys.length().address(), lengths.data(), 2 * sizeof(std::int32_t));
  }
}

// Input rows that begin on 16-byte boundaries are copied as they are and rounded after the copy.
// Other rows are converted while they are read.
BOOST_AUTO_TEST_CASE(the_place_of_rows_changes_no_bit) {
  constexpr std::int32_t tokens = 100;
  for (const Setting& s : settings) {
    const auto backend = make_emulated_cuda_backend({.math = s.math});
    for (const std::int64_t width : {16, 40, 72}) {
      const HeadProblem p(*backend, s.activations, {tokens}, 1, 1, width, width);
      // Returns y, dq, dk and dv. In the tensors of q, k, v and dy, `before` other columns precede
      // the columns of the head.
      const auto results = [&](std::int64_t before) {
        const auto moved = [&](const Tensor& x) {
          const std::vector<double> values = x.to_doubles();
          std::vector<double> wide;
          for (std::size_t i = 0; i < values.size(); ++i) {
            if (static_cast<std::int64_t>(i) % width == 0) {
              wide.insert(wide.end(), static_cast<std::size_t>(before), 9.0);
            }
            wide.push_back(values[i]);
          }
          return Heads{Tensor::from(*backend, {tokens, before + width}, s.activations, wide),
                       before, 1, width};
        };
        const auto result = [&] {
          return Heads{Tensor(*backend, {tokens, width}, s.activations), 0, 1, width};
        };
        const Scores scores{.q = moved(p.q),
                            .k = moved(p.k),
                            .queries = p.segments,
                            .keys = p.segments,
                            .scale = 0.2};
        const Heads v = moved(p.v), y = result(), dq = result(), dk = result(), dv = result();
        const Tensor log_sum(*backend, {tokens, 1}, DType::f32);
        (*backend)(Attention{
            .scores = scores, .rule = SoftmaxRule{.log_denominator = log_sum}, .v = v, .y = y});
        (*backend)(AttentionBackward{.scores = scores,
                                     .rule = SoftmaxGradient{.y = y, .log_denominator = log_sum},
                                     .v = v,
                                     .dy = moved(p.k),
                                     .dq = {dq},
                                     .dk = {dk},
                                     .dv = {dv}});
        std::vector<std::vector<double>> all;
        for (const Heads& x : {y, dq, dk, dv}) all.push_back(x.data.to_doubles());
        return all;
      };
      BOOST_TEST_CONTEXT(s.activations << ", " << name_of(s.math) << ", width " << width) {
        BOOST_TEST((results(0) == results(1)));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(scores_may_be_negated_or_all_equal) {
  const auto reference = make_reference_backend();
  const auto backend = make_emulated_cuda_backend({.math = Math::exact});
  const auto attended = [](Backend& on, DType type, double sharpness) {
    const HeadProblem p(on, type, {90, 3}, 1, 1, 8, 8);
    ScoreVars scores = p.scores();
    std::vector<double> tau(93, sharpness);
    for (std::size_t i = 0; i < tau.size(); i += 2) tau[i] *= -0.7;
    scores.multiplier = Tensor::from(on, {93, 1}, type, tau);
    return attention(scores, p.values()).value().to_doubles();
  };
  for (const double tau : {-4.0, 0.0}) {
    const auto expected = attended(*reference, DType::f64, tau);
    const auto got = attended(*backend, DType::f32, tau);
    BOOST_TEST_CONTEXT("tau " << tau) {
      for (std::size_t i = 0; i < got.size(); ++i) {
        BOOST_REQUIRE_SMALL(got[i] - expected[i], 1e-5);
      }
    }
  }
}

// In stick-breaking attention, a block stops reading keys when its queries have no weight left for
// the remaining keys. In this test, the remaining keys are NaN and would make the results NaN.
BOOST_AUTO_TEST_CASE(a_used_up_stick_reads_no_further_keys) {
  const emulator::InterleavedBlocks interleaved;
  constexpr std::int64_t rows = 320, width = 8, unread = 96, far = 192;
  for (const Math math : {Math::exact, Math::bf16}) {
    const auto backend = make_emulated_cuda_backend({.math = math});
    for (const bool shifted : {false, true}) {
      Rng rng(3, Purpose::test);
      std::vector<double> q, k, v, dy, c;
      for (std::int64_t i = 0; i < rows * width; ++i) {
        const bool never = i < unread * width;
        q.push_back(1 + rng.uniform());
        k.push_back(never ? std::numeric_limits<double>::quiet_NaN() : 1 + rng.uniform());
        v.push_back(rng.normal());
        dy.push_back(i < far * width ? 0 : 1);
        if (i % width == 0) c.push_back(-0.001 * static_cast<double>(i));
      }
      const auto of = [&](const std::vector<double>& values) {
        return Tensor::from(*backend, {rows, width}, DType::f32, values);
      };
      ScoreVars s{.q = all_columns(Var(of(q), true), 1),
                  .k = all_columns(Var(of(k), true), 1),
                  .queries = Segments(*backend, std::vector<std::int32_t>{rows})};
      if (shifted) s.decay = Var(Tensor::from(*backend, {rows, 1}, DType::f32, c), true);
      const HeadVars values = all_columns(Var(of(v), true), 1);
      Tape tape;
      const Var y = recorded(tape, [&] { return attention(s, values, StickBreakingVars{}); });
      tape.backward(y, of(dy));
      std::vector<Tensor> all{y.value(), s.q.data.grad(), s.k.data.grad(), values.data.grad()};
      if (shifted) all.push_back(s.decay.grad());
      for (const Tensor& x : all) {
        const std::vector<double> got = x.slice(far, rows - far).to_doubles();
        for (const double entry : got) BOOST_REQUIRE(std::isfinite(entry));
      }
    }
  }
}

// The entmax kernel stores lists of the scores that may exceed a query's threshold. With 150 keys
// and nearly equal scores, a query has more such scores than its lists can hold. With larger
// scores, some earlier scores must be dropped from the lists to make room for later ones. If the
// last score is by far the largest, only its key has a weight.
BOOST_AUTO_TEST_CASE(entmax_finds_the_threshold_of_few_and_many_candidates) {
  constexpr std::int64_t rows = 150, width = 8;
  const auto reference = make_reference_backend();
  const auto backend = make_emulated_cuda_backend({.math = Math::exact});
  const auto attended = [](Backend& on, DType type, double scale, bool rising) {
    Rng rng(3, Purpose::test);
    std::vector<double> q, k, v;
    for (std::int64_t i = 0; i < rows * width; ++i) {
      const double row = static_cast<double>(i / width);
      q.push_back(rising ? 1 : rng.normal());
      k.push_back(rising ? row : rng.normal());
      v.push_back(rng.normal());
    }
    const auto of = [&](const std::vector<double>& values) {
      return all_columns(Var(Tensor::from(on, {rows, width}, type, values)), 1);
    };
    const ScoreVars s{.q = of(q),
                      .k = of(k),
                      .queries = Segments(on, std::vector<std::int32_t>{rows}),
                      .scale = scale};
    return attention(s, of(v), EntmaxVars{}).value().to_doubles();
  };
  for (const double scale : {0.001, 0.1, 0.3, 1.0, 3.0}) {
    for (const bool rising : {false, true}) {
      const std::vector<double> expected = attended(*reference, DType::f64, scale, rising);
      const std::vector<double> got = attended(*backend, DType::f32, scale, rising);
      BOOST_TEST_CONTEXT("scale " << scale << ", rising " << rising) {
        for (std::size_t i = 0; i < got.size(); ++i) {
          BOOST_REQUIRE_SMALL(got[i] - expected[i], 1e-5 * (1 + (rising ? 20 * scale : 0)));
        }
      }
    }
  }
}

// Keys that no query sees, because of a window or because their segment has no queries, get zero
// gradients. The thread blocks of such keys must write zeros, although they process no query.
BOOST_AUTO_TEST_CASE(keys_that_no_query_sees_get_zero_gradients) {
  const auto reference = make_reference_backend();
  const auto emulated = make_emulated_cuda_backend({.math = Math::exact});
  const auto gradients = [](Backend& on, DType type, const RuleVars& rule, bool shifted) {
    const HeadProblem p(on, type, {200, 70}, 2, 1, 16, 16);
    ScoreVars s = p.scores(true);
    s.q = all_columns(Var(p.q.slice(0, 2), true), p.heads);
    s.queries = Segments(on, std::vector<std::int32_t>{2, 0});
    s.keys = p.segments;
    s.window = 16;
    if (shifted) s.decay = Var(random_tensor(on, {270, 2}, type, 7), true);
    const HeadVars values = p.values(true);
    Tape tape;
    const Var y = recorded(tape, [&] { return attention(s, values, rule); });
    tape.backward(y, random_tensor(on, {2, 32}, type, 8));
    std::vector<std::vector<double>> all;
    for (const Var& x : {s.q.data, s.k.data, values.data}) all.push_back(x.grad().to_doubles());
    if (shifted) all.push_back(s.decay.grad().to_doubles());
    return all;
  };
  for (const RuleVars& rule :
       {RuleVars(SoftmaxVars{}), RuleVars(EntmaxVars{}), RuleVars(StickBreakingVars{})}) {
    for (const bool shifted : {false, true}) {
      const auto expected = gradients(*reference, DType::f64, rule, shifted);
      for (const auto order : {emulator::Order::forward, emulator::Order::backward}) {
        emulator::set_order(order, 1);
        const auto got = gradients(*emulated, DType::f32, rule, shifted);
        emulator::set_order(emulator::Order::forward);
        BOOST_TEST_CONTEXT("rule " << rule.index() << ", shifted " << shifted) {
          for (std::size_t x = 0; x < expected.size(); ++x) {
            BOOST_REQUIRE_EQUAL(expected[x].size(), got[x].size());
            for (std::size_t i = 0; i < got[x].size(); ++i) {
              BOOST_REQUIRE_SMALL(got[x][i] - expected[x][i], 1e-5);
            }
          }
        }
      }
    }
  }
}

// The 100 queries are at positions 70 to 169, so the first query is in the middle of a block of
// keys. ChaCAL and DeltaFormer then read the outputs at some positions of this block from the cache
// of earlier outputs, and compute the others themselves.
BOOST_AUTO_TEST_CASE(a_chunk_after_a_cache_gives_the_rows_of_the_whole) {
  constexpr std::int64_t before = 70, rows = 100, width = 16;
  const auto backend = make_emulated_cuda_backend({.math = Math::exact});
  const HeadProblem p(*backend, DType::f32, {before + rows}, 2, 1, width, width);
  const Var gamma(Tensor::from(*backend, {1}, DType::f32, std::vector<double>{0.9}));
  const std::vector<std::int32_t> lengths{rows};
  ScoreVars chunk = p.scores();
  chunk.q = all_columns(Var(p.q.slice(before, rows)), p.heads);
  chunk.queries = Segments(*backend, lengths);
  chunk.keys = p.segments;

  const auto compare = [&](const char* what, const Var& whole, const Var& part) {
    const std::vector<double> expected = whole.value().slice(before, rows).to_doubles();
    const std::vector<double> got = part.value().to_doubles();
    BOOST_TEST_CONTEXT(what) {
      BOOST_REQUIRE_EQUAL(expected.size(), got.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        BOOST_REQUIRE_SMALL(got[i] - expected[i], 1e-5);
      }
    }
  };
  compare("softmax", attention(p.scores(), p.values()), attention(chunk, p.values()));
  ScoreVars near = p.scores(), near_chunk = chunk;
  near.window = near_chunk.window = 66;
  compare("window", attention(near, p.values()), attention(near_chunk, p.values()));
  compare("fal", fal(p.fal()).y,
          fal({.q = chunk.q,
               .k = chunk.k,
               .v = p.values(),
               .queries = chunk.queries,
               .keys = chunk.keys})
              .y);

  const auto cached = [&](const Var& whole) {
    std::vector<double> cache = whole.value().to_doubles();
    for (std::size_t i = before * 2 * width; i < cache.size(); ++i) {
      // The chunk must not read the cache at its own positions.
      cache[i] = std::numeric_limits<double>::quiet_NaN();
    }
    return Heads{Tensor::from(*backend, whole.value().shape(), DType::f32, cache), 0, 2, width};
  };
  const Var whole = chacal(p.scores(), p.values(), gamma);
  compare("chacal", whole, chacal(chunk, p.values(), gamma, cached(whole)));
  const HeadProblem two(*backend, DType::f32, {before + rows}, 2, 2, width, width);
  const Tensor gain = random_tensor(*backend, {before + rows, 2}, DType::f32, 7, 0.5);
  DeltaFormerVars in{.q = two.scores().q,
                     .k = two.scores().k,
                     .v = two.values(),
                     .gain = gain,
                     .queries = two.segments};
  const Var chained = deltaformer(in);
  in.q = all_columns(Var(two.q.slice(before, rows)), 2);
  in.gain = gain.slice(before, rows);
  in.queries = chunk.queries;
  in.keys = two.segments;
  compare("deltaformer", chained, deltaformer(in, cached(chained)));
}

// The gradient of the shift (Scores::decay) is a difference of row sums and column sums of dS,
// which two kernels compute. The kernels must round P in the same way. Otherwise rounding errors
// accumulate over the sequence if large products q . k and large differences of shifts cancel in
// the scores.
BOOST_AUTO_TEST_CASE(gradients_of_c_sum_to_0_if_large_scores_and_c_cancel) {
  const auto backend = make_emulated_cuda_backend({.math = Math::exact});
  constexpr std::int64_t n = 150, width = 8;
  Rng rng(4, Purpose::test);
  std::vector<double> q, k, v, dy, c;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto far = 2 * static_cast<double>(i);  // makes q_i . k_j = 2 (i - j) + a small number
    for (std::int64_t column = 0; column < width; ++column) {
      q.push_back(column == 0 ? 1 : column == 1 ? far : 0.3 * rng.normal());
      k.push_back(column == 0 ? -far : column == 1 ? 1 : 0.3 * rng.normal());
      v.push_back(rng.normal());
      dy.push_back(rng.normal());
    }
    c.push_back(-far);
  }
  const auto rows = [&](const std::vector<double>& values, std::int64_t columns) {
    return Tensor::from(*backend, {n, columns}, DType::f32, values);
  };
  const ScoreVars s{.q = all_columns(Var(rows(q, width), true), 1),
                    .k = all_columns(Var(rows(k, width), true), 1),
                    .queries = Segments(*backend, std::vector<std::int32_t>{n}),
                    .scale = 1,
                    .decay = Var(rows(c, 1), true)};
  const HeadVars values = all_columns(Var(rows(v, width), true), 1);
  Tape tape;
  const Var y = recorded(tape, [&] { return attention(s, values, SoftmaxVars{}); });
  tape.backward(y, rows(dy, width));
  double sum = 0, size = 0;
  for (const double dc : s.decay.grad().to_doubles()) {
    sum += dc;
    size += std::abs(dc);
  }
  BOOST_TEST(size > 1);
  BOOST_TEST(std::abs(sum) < 1e-7 * size);
}

BOOST_AUTO_TEST_SUITE_END()
