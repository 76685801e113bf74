#include <cmath>
#include <string_view>
#include <vector>
#include "tests/check.h"

#include "core/backend.h"
#include "core/contract/attention.h"
#include "core/contract/chacal.h"
#include "core/contract/fal.h"
#include "core/cpu/attention/work.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/isa.h"
#include "core/rng.h"
#include "tests/attention_tile_probe.h"
#include "tests/distance.h"

BOOST_AUTO_TEST_SUITE(attention_cpu_test)

using namespace longhand;

// Tests the CPU's attention kernels with every instruction set of this machine, at larger sizes
// than the test cases of the op catalog. Results are compared with the reference backend in f64,
// and between different numbers of threads.

namespace {

using Doubles = std::vector<double>;

struct Problem {
  std::vector<std::int32_t> queries, keys;
  std::int64_t heads, group, width, value_width;
  // The optional inputs of the operation that the problem has, one letter each: t
  // (Scores::multiplier), c (Scores::decay), b (SoftmaxRule::sink).
  std::string_view more = "";
  std::int64_t window = 0;
  double gamma = 0;
  DType type = DType::f32;
  double gain = 1;  // standard deviation of the random entries of q, k, v and dy
  // If 1, the entries of q and k have random signs. A value below 1 is the probability that all
  // entries of a key are positive; otherwise they are all negative. All entries of q are then
  // positive, so the scores of a key have the sign of its entries.
  double matching = 1;
  bool causal = true;
};

/// Draws `count` normal numbers with standard deviation p.gain, rounded to the type p.type.
Doubles draw(Rng& rng, const Problem& p, std::int64_t count) {
  Doubles values(static_cast<std::size_t>(count));
  for (double& x : values) {
    const auto drawn = static_cast<float>(p.gain * static_cast<double>(rng.normal()));
    x = p.type == DType::bf16 ? static_cast<float>(bf16(drawn)) : drawn;
  }
  return values;
}

/// With probability `matching`, makes all entries of a key positive, otherwise negative. Each row
/// of kv, a matrix with kv_columns columns, contains one key in the columns 1 to `width`.
void choose_signs(Doubles& kv, std::int64_t kv_columns, std::int64_t width, double matching) {
  Rng signs(3, Purpose::test);
  for (std::int64_t begin = 1; begin < std::ssize(kv); begin += kv_columns) {
    const double sign = static_cast<double>(signs.uniform()) < matching ? 1 : -1;
    for (std::int64_t c = begin; c < begin + width; ++c) {
      kv[static_cast<std::size_t>(c)] = sign * std::abs(kv[static_cast<std::size_t>(c)]);
    }
  }
}

/// The input and result tensors of a Problem. q, k and v are columns of larger tensors, as after a
/// fused projection. On the reference backend all tensors are f64, but the values are rounded to
/// the problem's type.
struct Data {
  Data(Backend& backend, const Problem& p)
      : type(backend.name() == "reference" ? DType::f64 : p.type),
        queries(backend, p.queries),
        keys(backend, p.keys) {
    Rng rng(11, Purpose::test);
    const auto tensor = [&](std::int64_t columns, const Doubles& values) {
      return Tensor::from(backend, {std::ssize(values) / columns, columns}, type, values);
    };
    const std::int64_t n = queries.tokens(), m = keys.rows(), key_heads = p.heads / p.group;
    const std::int64_t q_columns = p.heads * p.width + 5, y_columns = p.heads * p.value_width;
    const std::int64_t kv_columns = key_heads * (p.width + p.value_width) + 4;
    Doubles q_values = draw(rng, p, n * q_columns), kv_values = draw(rng, p, m * kv_columns);
    if (p.matching < 1) {
      for (double& x : q_values) x = std::abs(x);
      choose_signs(kv_values, kv_columns, key_heads * p.width, p.matching);
    }
    const Tensor kv = tensor(kv_columns, kv_values);
    q = {tensor(q_columns, q_values), 2, p.heads, p.width};
    k = {kv, 1, key_heads, p.width};
    v = {kv, 3 + key_heads * p.width, key_heads, p.value_width};
    dy = {tensor(y_columns, draw(rng, p, n * y_columns)), 0, p.heads, p.value_width};
    const auto fresh = [&](const Heads& x) {
      return Heads{Tensor::zeros(backend, x.data.shape(), type), x.first_column, x.heads, x.width};
    };
    y = fresh(dy);
    dq = fresh(q);
    dk = fresh(k);
    dv = fresh(v);
    const DType master = master_type(type);
    log_sum = Tensor::zeros(backend, {n, p.heads}, master);
    match = Tensor::zeros(backend, {n, p.heads}, DType::i32);
    const auto number = [&](float x) {
      return Tensor::from(backend, {1}, master, Doubles{static_cast<double>(x)});
    };
    gamma = number(static_cast<float>(p.gamma));
    dgamma = Tensor::zeros(backend, {1}, master);
    scores = {.q = q,
              .k = k,
              .queries = queries,
              .keys = keys,
              .scale = 1 / std::sqrt(double(p.width)),
              .window = p.window,
              .causal = p.causal};
    const auto add = [&](char letter, Tensor& to, Tensor& gradient, const Shape& shape,
                         float mean) {
      if (p.more.find(letter) == std::string_view::npos) return;
      Doubles values(static_cast<std::size_t>(shape.size()));
      for (double& x : values)
        x = static_cast<double>(mean + 0.5f * static_cast<float>(rng.normal()));
      to = Tensor::from(backend, shape, master, values);
      gradient = Tensor::zeros(backend, shape, master);
    };
    add('t', scores.multiplier, dtau, {n, p.heads}, 0.8f);
    add('c', scores.decay, dshift, {m, p.heads}, 0);
    add('b', sink, dsink, {p.heads}, 1);
  }
  ScoreTargets more(bool add) const { return {{dtau, add}, {dshift, add}}; }
  DType type;
  Segments queries, keys;
  Heads q, k, v, dy, y, dq, dk, dv;
  Tensor log_sum, match, gamma, dgamma, dtau, dshift, sink, dsink;
  Scores scores;
};

/// Runs the backward operation of a problem. `run(op)` executes an operation. If `add` is true, the
/// gradients are added to those that are already in `d`.
template <class Run>
void run_backward(Run&& run, const Problem& p, const Data& d, bool add = false) {
  if (p.gamma > 0) {
    run(ChacalBackward{d.scores,
                       d.sink,
                       d.v,
                       d.y,
                       d.dy,
                       d.gamma,
                       d.log_sum,
                       {d.dq, add},
                       {d.dk, add},
                       {d.dv, add},
                       d.more(add),
                       {d.dsink, add},
                       {d.dgamma, add}});
  } else {
    run(AttentionBackward{d.scores,
                          SoftmaxGradient{d.sink, d.y, d.log_sum, {d.dsink, add}},
                          d.v,
                          d.dy,
                          {d.dq, add},
                          {d.dk, add},
                          {d.dv, add},
                          d.more(add)});
  }
}
template <class Run>
void run_all(Run&& run, const Problem& p, const Data& d) {
  if (p.gamma > 0) {
    run(Chacal{d.scores, d.sink, d.v, d.gamma, {}, d.y, d.log_sum});
  } else {
    run(Attention{d.scores, SoftmaxRule{d.sink, d.log_sum}, d.v, d.y});
  }
  run_backward(run, p, d);
}

/// Returns a function that runs an operation with the kernels of an instruction set.
auto on(cpu::Isa isa, Math math = Math::exact, int threads = 2) {
  const auto backend = make_cpu_backend({.threads = threads, .math = math}, isa);
  return [backend](const auto& op) { backend->run(op); };
}

/// The tensors of a problem with the results of the reference backend.
Data expected_of(const Problem& p) {
  static const std::shared_ptr<Backend> reference = make_reference_backend();
  Data d(*reference, p);
  run_all(*reference, p, d);
  return d;
}

/// Returns the sum of |x_i y_i| over all entries x_i of `a` and y_i of `b`.
double size_of_products(const Heads& a, const Heads& b) {
  const Doubles x = a.data.to_doubles(), y = b.data.to_doubles();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::abs(x[i] * y[i]);
  return sum;
}

void check_close(const Data& got, const Data& expected, double bound) {
  const auto near = [&](const Tensor& x, const Tensor& wanted) {
    return distance(wanted.to_doubles(), x.to_doubles()) < bound;
  };
  BOOST_TEST(near(got.y.data, expected.y.data));
  BOOST_TEST(near(got.log_sum, expected.log_sum));
  BOOST_TEST(near(got.dq.data, expected.dq.data));
  BOOST_TEST(near(got.dk.data, expected.dk.data));
  BOOST_TEST(near(got.dv.data, expected.dv.data));
  if (got.dtau) BOOST_TEST(near(got.dtau, expected.dtau));
  if (got.dshift) BOOST_TEST(near(got.dshift, expected.dshift));
  if (got.dsink) BOOST_TEST(near(got.dsink, expected.dsink));
  // The gradient of ChaCAL's parameter gamma is a sum that contains -dv v / (1 - gamma) for every
  // entry of v. Its error is therefore bounded relative to the sum of |dv v| / (1 - gamma).
  if (const double gamma = expected.gamma.item(); gamma > 0) {
    const double size = size_of_products(expected.dv, expected.v) / (1 - gamma);
    BOOST_TEST(std::abs(got.dgamma.item() - expected.dgamma.item()) < bound * size);
  }
}

/// Lengths of sequences. `ragged` contains lengths near 64, the number of rows of a panel, and near
/// the widths of SIMD vectors. `long_ones` contains sequences so long that their queries or keys
/// are divided into several work items.
const std::vector<std::int32_t> ragged{1, 5, 0, 16, 17, 63, 64, 65, 130, 41, 2};
const std::vector<std::int32_t> long_ones{600, 3, 321};
const std::vector<std::int32_t> few_queries{1, 3, 0, 70, 5};
const std::vector<std::int32_t> more_keys{9, 3, 4, 330, 65};
const std::vector<std::int32_t> few_keys{1, 3, 2, 70, 64};
const std::vector<std::int32_t> other_long_ones{130, 300, 700};

std::vector<Problem> problems() {
  std::vector<Problem> all{
      // The members of each problem are queries, keys, heads, group, width, value_width, more and
      // window.
      {ragged, ragged, 2, 1, 16, 16},
      {ragged, ragged, 4, 2, 5, 33, "t"},
      {ragged, ragged, 4, 2, 16, 20, "tcb"},
      {long_ones, long_ones, 2, 2, 20, 7, "t"},
      {long_ones, long_ones, 2, 2, 20, 7, "c"},
      {long_ones, long_ones, 2, 1, 9, 16, "b"},
      {long_ones, long_ones, 1, 1, 64, 64, "t", 37},
      {long_ones, long_ones, 1, 1, 24, 8, "cb", 37},
      {long_ones, long_ones, 1, 1, 3, 1, "", 300},
      {few_queries, more_keys, 2, 1, 12, 18, "t"},
      {few_queries, more_keys, 2, 1, 12, 18, "cb"},
      {{30, 100}, {30, 100}, 1, 1, 704, 768},
      {{40, 90}, {40, 90}, 1, 1, 16, 16},
  };
  all.back().gain = 20;
  const std::size_t plain = all.size();
  for (std::size_t i = 0; i < plain; ++i) {
    Problem p = all[i];
    if (p.window > 0 || p.queries != p.keys || p.gain > 1) continue;
    p.gamma = 0.9;
    all.push_back(p);
  }
  for (Problem p : {Problem{ragged, ragged, 2, 1, 16, 16},
                    {few_queries, more_keys, 4, 2, 5, 33},
                    {more_keys, few_keys, 2, 1, 20, 7},
                    {long_ones, other_long_ones, 1, 1, 24, 8},
                    {other_long_ones, long_ones, 2, 2, 20, 64, "tb"}}) {
    p.causal = false;
    all.push_back(p);
  }
  return all;
}

/// Computes attention and its gradients with the kernels for tile registers. All queries of the
/// head are one work item of the forward pass, and all its keys one work item of the backward pass.
template <class Forward, class Backward>
void run_tiles(const Forward& forward, const Backward& backward, const Problem& p, const Data& d) {
  const cpu::SegmentRows at = cpu::segment_rows(d.queries, d.keys, 0);
  const cpu::SegmentShape shape{
      at.queries, at.keys,      cpu::first_position(d.scores, at), cpu::window_of(d.scores),
      p.width,    p.value_width};
  constexpr std::int64_t most = 256;
  std::vector<float> space(
      static_cast<std::size_t>(std::max(forward.scratch(p.width, p.value_width, most, shape.keys),
                                        backward.scratch(p.width, p.value_width, most))));
  const auto scale = static_cast<float>(d.scores.scale);
  const cpu::AttentionRows<float> rows{
      .shape = shape,
      .q = cpu::rows_of<const float>(d.q, 0, 0),
      .k = cpu::rows_of<const float>(d.k, 0, 0),
      .v = cpu::rows_of<const float>(d.v, 0, 0),
      .y = cpu::rows_of<float>(d.y, 0, 0),
      .log_sum = cpu::column_of<float>(d.log_sum, 0, 0),
      .earlier = {},
      .tau = cpu::column_of<const float>(d.scores.multiplier, 0, 0),
      .shift = {},
      .scale = scale};
  forward.begin(rows, {0, shape.queries}, space.data());
  forward.before(rows, {0, shape.queries}, 0, shape.offset, space.data());
  forward.own(rows, {0, shape.queries}, space.data());
  cpu::AttentionGradients<float> task{.shape = shape,
                                      .q = rows.q,
                                      .k = rows.k,
                                      .v = rows.v,
                                      .y = cpu::rows_of<const float>(d.y, 0, 0),
                                      .dy = cpu::rows_of<const float>(d.dy, 0, 0),
                                      .log_sum = cpu::column_of<const float>(d.log_sum, 0, 0),
                                      .tau = rows.tau,
                                      .shift = {},
                                      .pull = {},
                                      .scale = scale,
                                      .dq = cpu::rows_of<float>(d.dq, 0, 0),
                                      .dk = cpu::rows_of<float>(d.dk, 0, 0),
                                      .dv = cpu::rows_of<float>(d.dv, 0, 0),
                                      .dtau = cpu::column_of<float>(d.dtau, 0, 0),
                                      .dshift = {},
                                      .dots = {},
                                      .row_sums = {},
                                      .dpull = {},
                                      .end = shape.keys,
                                      .range = most};
  backward.begin(task, space.data());
  backward.begin_head(task, 0, space.data());
  for (std::int64_t row = (shape.queries - 1) / 64 * 64; row >= 0; row -= 64) {
    backward.panel(task, 0, row, space.data());
  }
  backward.end_head(task, 0, space.data());
  backward.end(task, space.data());
}

}  // namespace

BOOST_AUTO_TEST_CASE(softmax_and_chacal_agree_with_the_reference_on_every_instruction_set) {
  const auto backend = make_cpu_backend();
  int number = 0;
  for (const Problem& p : problems()) {
    const Data expected = expected_of(p);
    for (const cpu::Isa isa : cpu::supported_isas()) {
      BOOST_TEST_CONTEXT("problem " << number << " on " << cpu::name_of(isa)) {
        const Data d(*backend, p);
        run_all(on(isa), p, d);
        check_close(d, expected, 5e-6 * p.gain * p.gain);
        // Math::fast has a larger bound than exact math. On processors with tile registers (AMX),
        // it replaces each operand by the sum of two bf16 numbers, which has only 16 significant
        // bits.
        const Data fast(*backend, p);
        run_all(on(isa, Math::fast), p, fast);
        check_close(fast, expected, 5e-5 * p.gain * p.gain);
      }
    }
    ++number;
  }
}

// A gradient depends on a chain of up to five matrix products. Each product rounds its operands and
// its result to bf16, whose numbers have 8 significant bits.
BOOST_AUTO_TEST_CASE(bf16_activations_and_products_stay_near_the_reference) {
  const auto backend = make_cpu_backend();
  int number = 0;
  for (Problem p : problems()) {
    if (p.gain > 1) continue;
    for (const DType type : {DType::f32, DType::bf16}) {
      p.type = type;
      const Data expected = expected_of(p);
      for (const cpu::Isa isa : cpu::supported_isas()) {
        for (const Math math : {Math::exact, Math::bf16}) {
          if (type == DType::f32 && math == Math::exact) continue;
          BOOST_TEST_CONTEXT("problem " << number << " on " << cpu::name_of(isa) << ", " << type
                                        << ", " << name_of(math)) {
            const Data d(*backend, p);
            run_all(on(isa, math), p, d);
            check_close(d, expected, math == Math::exact ? 2e-2 : 5e-2);
          }
        }
      }
    }
    ++number;
  }
}

BOOST_AUTO_TEST_CASE(gradients_are_added_to_targets_that_ask_for_it) {
  const auto backend = make_cpu_backend();
  const auto run = on(cpu::choose_isa());
  for (const Problem& p : problems()) {
    if (p.width > 64) continue;
    const Data once(*backend, p), twice(*backend, p);
    run_all(run, p, once);
    run_all(run, p, twice);
    run_backward(run, p, twice, true);
    const auto doubled = [](const Tensor& x) {
      Doubles values = x.to_doubles();
      for (double& value : values) value *= 2;
      return values;
    };
    BOOST_TEST(distance(doubled(once.dq.data), twice.dq.data.to_doubles()) < 1e-6);
    BOOST_TEST(distance(doubled(once.dk.data), twice.dk.data.to_doubles()) < 1e-6);
    BOOST_TEST(distance(doubled(once.dv.data), twice.dv.data.to_doubles()) < 1e-6);
    for (const auto x : {&Data::dtau, &Data::dshift, &Data::dsink}) {
      if (!(once.*x)) continue;
      BOOST_TEST(distance(doubled(once.*x), (twice.*x).to_doubles()) < 1e-6);
    }
    BOOST_TEST(distance(doubled(once.dgamma), twice.dgamma.to_doubles()) < 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_changes_no_bit_of_attention) {
  const auto backend = make_cpu_backend();
  for (const Problem& p : problems()) {
    for (const Math math : {Math::exact, Math::fast, Math::bf16}) {
      std::vector<std::vector<Doubles>> results;
      for (const int count : {1, 2, 3, 8}) {
        Data d(*backend, p);
        run_all(on(cpu::choose_isa(), math, count), p, d);
        results.push_back({d.y.data.to_doubles(), d.log_sum.to_doubles(), d.dq.data.to_doubles(),
                           d.dk.data.to_doubles(), d.dv.data.to_doubles(), d.dgamma.to_doubles()});
        for (const Tensor& x : {d.dtau, d.dshift, d.dsink}) {
          if (x) results.back().push_back(x.to_doubles());
        }
        BOOST_TEST(results.front() == results.back());
      }
    }
  }
}

// Tests the kernels for AMX tile registers. TileModel emulates these, so that the test runs on any
// machine.
BOOST_AUTO_TEST_CASE(emulated_amx_tiles_stay_near_the_reference) {
  const auto backend = make_cpu_backend();
  const std::vector<Problem> all{{{5}, {5}, 1, 1, 5, 3},
                                 {{150}, {150}, 1, 1, 20, 70, "t"},
                                 {{97}, {97}, 1, 1, 33, 16, "", 20},
                                 {{70}, {130}, 1, 1, 16, 40, "t", 66},
                                 {{97}, {70}, 1, 1, 20, 33, "t", 0, 0, DType::f32, 1, 1, false}};
  for (const cpu::Isa isa : cpu::supported_isas()) {
    const cpu::AttentionTileProbe& probe = cpu::kernels_for<cpu::AttentionTileProbe>(isa);
    for (const Problem& p : all) {
      const Data expected = expected_of(p);
      for (const Math math : {Math::fast, Math::bf16}) {
        const Data d(*backend, p);
        if (math == Math::fast) {
          run_tiles(probe.forward.fast, probe.backward.fast, p, d);
        } else {
          run_tiles(probe.forward.bf16, probe.backward.bf16, p, d);
        }
        BOOST_TEST_CONTEXT("width " << p.width << " on " << cpu::name_of(isa) << ", "
                                    << name_of(math)) {
          check_close(d, expected, math == Math::fast ? 5e-5 : 5e-2);
          // Math::bf16 uses only the high bf16 part of each operand, and its errors must exceed
          // 2e-4. So Math::fast would exceed its bound of 5e-5 if it ignored the low parts, too.
          if (math == Math::fast) continue;
          BOOST_TEST(distance(expected.y.data.to_doubles(), d.y.data.to_doubles()) > 2e-4);
          BOOST_TEST(distance(expected.dk.data.to_doubles(), d.dk.data.to_doubles()) > 2e-4);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(chacal_with_gamma_0_is_softmax_attention_bit_for_bit) {
  const auto backend = make_cpu_backend();
  const Problem p{ragged, ragged, 2, 1, 16, 16};
  for (const cpu::Isa isa : cpu::supported_isas()) {
    Data a(*backend, p), b(*backend, p);
    run_all(on(isa), p, a);
    on(isa)(Chacal{b.scores, b.sink, b.v, b.gamma, {}, b.y, b.log_sum});
    BOOST_TEST(a.y.data.to_doubles() == b.y.data.to_doubles());
    on(isa)(ChacalBackward{
        b.scores, b.sink, b.v, b.y, b.dy, b.gamma, b.log_sum, {b.dq}, {b.dk}, {b.dv}});
    BOOST_TEST(a.dq.data.to_doubles() == b.dq.data.to_doubles());
    BOOST_TEST(a.dk.data.to_doubles() == b.dk.data.to_doubles());
    BOOST_TEST(a.dv.data.to_doubles() == b.dv.data.to_doubles());
  }
}

BOOST_AUTO_TEST_CASE(chacal_continues_after_rows_in_a_cache) {
  const auto backend = make_cpu_backend();
  const std::int64_t heads = 2, width = 12;
  const Problem p{.queries = {150, 7},
                  .keys = {150, 7},
                  .heads = heads,
                  .group = 1,
                  .width = width,
                  .value_width = width,
                  .gamma = 0.8};
  for (const cpu::Isa isa : cpu::supported_isas()) {
    Data d(*backend, p);
    run_all(on(isa), p, d);
    for (const std::int32_t fresh : {1, 5, 70, 150}) {
      // Tests ChaCAL with a cache: computes only the last `fresh` rows of the first segment, and
      // reads the outputs of earlier rows from the cache.
      const std::int32_t queries[] = {fresh}, keys[] = {150};
      const Segments q(*backend, queries), k(*backend, keys);
      const auto part = [&](const Heads& x) {
        return Heads{x.data.slice(150 - fresh, fresh), x.first_column, x.heads, x.width};
      };
      const Tensor y = Tensor::zeros(*backend, {fresh, heads * width}, DType::f32);
      const Scores scores{part(d.q), d.k, q, k, d.scores.scale};
      on(isa)(Chacal{scores, {}, d.v, d.gamma, d.y, {y, 0, heads, width}});
      BOOST_TEST(distance(part(d.y).data.to_doubles(), y.to_doubles()) < 2e-6);
    }
  }
}

BOOST_AUTO_TEST_CASE(first_after_last_agrees_with_the_reference_on_every_instruction_set) {
  const auto backend = make_cpu_backend();
  const std::vector<Problem> cases{{ragged, ragged, 2, 1, 16, 16},
                                   {long_ones, long_ones, 4, 2, 5, 33},
                                   {few_queries, more_keys, 2, 1, 64, 20},
                                   {{30, 100}, {30, 100}, 1, 1, 300, 64}};
  const auto reference = make_reference_backend();
  const auto run_fal = [](auto&& run, const Data& d) {
    run(Fal{d.q, d.k, d.v, d.queries, d.keys, d.y, d.match});
    run(FalBackward{d.q, d.k, d.v, d.queries, d.keys, d.match, d.dy, {d.dq}, {d.dk}, {d.dv}});
  };
  // `share` determines how far back from a query the last key with a positive score is. With 1
  // (random signs), it is a few keys back; with 0.005, several blocks of keys. With 0, no key has a
  // positive score.
  for (const double share : {1.0, 0.005, 0.0}) {
    for (Problem p : cases) {
      p.matching = share;
      const Data expected(*reference, p);
      run_fal(*reference, expected);
      for (const cpu::Isa isa : cpu::supported_isas()) {
        for (const int count : {1, 3}) {
          BOOST_TEST_CONTEXT("share " << share << ", width " << p.width << ", "
                                      << cpu::name_of(isa)) {
            const Data d(*backend, p);
            run_fal(on(isa, Math::exact, count), d);
            BOOST_TEST(d.match.to_ints() == expected.match.to_ints());
            BOOST_TEST(distance(expected.y.data.to_doubles(), d.y.data.to_doubles()) < 2e-6);
            BOOST_TEST(distance(expected.dq.data.to_doubles(), d.dq.data.to_doubles()) < 2e-6);
            BOOST_TEST(distance(expected.dk.data.to_doubles(), d.dk.data.to_doubles()) < 2e-6);
            BOOST_TEST(distance(expected.dv.data.to_doubles(), d.dv.data.to_doubles()) < 2e-6);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
