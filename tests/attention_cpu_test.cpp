#include <cmath>
#include <vector>
#include "tests/check.h"

#include "core/backend.h"
#include "core/cpu/attention/attention.h"
#include "core/cpu/isa.h"
#include "core/rng.h"

using namespace longhand;

// The CPU's attention kernels, each instruction set of this machine, against loops in double over
// one head of one sequence at a time, and against themselves with other numbers of threads.
BOOST_AUTO_TEST_SUITE(attention_cpu_test)

namespace {

using Doubles = std::vector<double>;

struct Problem {
  std::vector<std::int32_t> queries, keys;
  std::int64_t heads, group, width, value_width;
  Temper temper = Temper::none;
  std::int64_t window = 0;
  double gamma = 0;
  DType type = DType::f32;
  double gain = 1;  // of the drawn numbers
};

/// A problem's tensors: q, k, v side by side with gaps, as in a fused projection.
struct Data {
  Data(Backend& backend, const Problem& p) : queries(backend, p.queries), keys(backend, p.keys) {
    Rng rng(11, Purpose::test);
    const auto draw = [&](std::int64_t rows, std::int64_t columns) {
      Doubles values(static_cast<std::size_t>(rows * columns));
      for (double& x : values) x = p.gain * static_cast<double>(rng.normal());
      return Tensor::from(backend, {rows, columns}, p.type, values);
    };
    const std::int64_t n = queries.tokens(), m = keys.rows();
    const std::int64_t key_heads = p.heads / p.group;
    q = {draw(n, p.heads * p.width + 5), 2, p.heads, p.width};
    const Tensor kv = draw(m, key_heads * (p.width + p.value_width) + 4);
    k = {kv, 1, key_heads, p.width};
    v = {kv, 3 + key_heads * p.width, key_heads, p.value_width};
    dy = {draw(n, p.heads * p.value_width), 0, p.heads, p.value_width};
    const auto fresh = [&](const Heads& x) {
      return Heads{Tensor::zeros(backend, x.data.shape(), p.type), x.first_column, x.heads,
                   x.width};
    };
    y = fresh(dy);
    dq = fresh(q);
    dk = fresh(k);
    dv = fresh(v);
    log_sum = Tensor::zeros(backend, {n, p.heads}, DType::f32);
    match = Tensor::zeros(backend, {n, p.heads}, DType::i32);
    const double beta_value[] = {0.7}, gamma_value[] = {p.gamma};
    if (p.temper != Temper::none) beta = Tensor::from(backend, {1}, DType::f32, beta_value);
    gamma = Tensor::from(backend, {1}, DType::f32, gamma_value);
    dbeta = Tensor::zeros(backend, {1}, DType::f32);
    dgamma = Tensor::zeros(backend, {1}, DType::f32);
    scores = {q, k, queries, keys, 1 / std::sqrt(double(p.width)), p.temper, beta, p.window, {}};
  }
  Segments queries, keys;
  Heads q, k, v, dy, y, dq, dk, dv;
  Tensor log_sum, match, beta, gamma, dbeta, dgamma;
  Scores scores;
};

double entry(const std::vector<double>& all, const Heads& x, std::int64_t row, std::int64_t head,
             std::int64_t c) {
  return all[row * x.data.columns() + x.first_column + head * x.width + c];
}

/// The formulas of core/contract in double.
class Plain {
 public:
  Plain(const Problem& p, const Data& d) : p_(p), d_(d) {
    q_ = d.q.data.to_doubles();
    k_ = d.k.data.to_doubles();
    v_ = d.v.data.to_doubles();
    dy_ = d.dy.data.to_doubles();
    y.assign(d.y.data.size(), 0);
    dq.assign(d.dq.data.size(), 0);
    dk.assign(d.dk.data.size(), 0);
    dv.assign(d.dv.data.size(), 0);
    log_sum.assign(d.log_sum.size(), 0);
    for (std::size_t s = 0; s < p.queries.size(); ++s) {
      for (std::int64_t h = 0; h < p.heads; ++h) softmax(s, h);
    }
  }

  Doubles y, dq, dk, dv, log_sum;
  double dbeta = 0, dgamma = 0;
  double dbeta_size = 0, dgamma_size = 0;  // sums of the terms' sizes

 private:
  double& at(Doubles& all, const Heads& x, std::int64_t row, std::int64_t head, std::int64_t c) {
    return all[row * x.data.columns() + x.first_column + head * x.width + c];
  }

  void softmax(std::size_t s, std::int64_t h) {
    const std::int64_t n = p_.queries[s], m = p_.keys[s], before = m - n, kv = h / p_.group;
    const std::int64_t query = d_.queries.begins()[s], key = d_.keys.begins()[s];
    const std::int64_t w = p_.width, vw = p_.value_width;
    const double g = p_.gamma, scale = d_.scores.scale;
    const auto P = [&](std::int64_t t, std::int64_t j) -> double& { return weights_[t * m + j]; };
    Doubles raw(n * m), logs(n);
    weights_.assign(n * m, 0);
    for (std::int64_t t = 0; t < n; ++t) {
      const std::int64_t i = before + t;
      const std::int64_t length = p_.temper == Temper::length ? m : i + 1;
      logs[t] = std::log(double(std::max<std::int64_t>(2, length)));
      const double tau = p_.temper == Temper::none ? 1 : 0.7f * logs[t];
      const std::int64_t first = p_.window > 0 ? std::max<std::int64_t>(0, i - p_.window + 1) : 0;
      double max = -1e300, sum = 0;
      for (std::int64_t j = first; j <= i; ++j) {
        double dot = 0;
        for (std::int64_t c = 0; c < w; ++c) {
          dot += entry(q_, d_.q, query + t, h, c) * entry(k_, d_.k, key + j, kv, c);
        }
        raw[t * m + j] = scale * dot;
        P(t, j) = tau * scale * dot;
        max = std::max(max, P(t, j));
      }
      for (std::int64_t j = first; j <= i; ++j) sum += P(t, j) = std::exp(P(t, j) - max);
      for (std::int64_t j = first; j <= i; ++j) P(t, j) /= sum;
      log_sum[(query + t) * p_.heads + h] = max + std::log(sum);
      for (std::int64_t c = 0; c < vw; ++c) {
        double out = 0;
        for (std::int64_t j = first; j <= i; ++j) {
          const double own = (1 - g) * entry(v_, d_.v, key + j, kv, c);
          out += P(t, j) * (j < i && g > 0 ? own + g * entry(y, d_.y, query + j, h, c) : own);
        }
        at(y, d_.y, query + t, h, c) = out;
      }
    }
    Doubles W(n * vw);
    for (std::int64_t j = m - 1; j >= 0; --j) {
      const std::int64_t t = j - before;
      for (std::int64_t c = 0; c < vw; ++c) {
        double b = 0;
        for (std::int64_t i = std::max<std::int64_t>(0, t + 1); i < n; ++i) {
          b += P(i, j) * W[i * vw + c];
        }
        double a = b;
        if (t >= 0) {
          W[t * vw + c] = entry(dy_, d_.dy, query + t, h, c) + g * b;
          a += P(t, j) * W[t * vw + c];
          dgamma += b * entry(y, d_.y, query + t, h, c);
          dgamma_size += std::abs(b * entry(y, d_.y, query + t, h, c));
        }
        dgamma -= a * entry(v_, d_.v, key + j, kv, c);
        at(dv, d_.dv, key + j, kv, c) += (1 - g) * a;
      }
    }
    for (std::int64_t t = 0; t < n; ++t) {
      const std::int64_t i = before + t;
      const double tau = p_.temper == Temper::none ? 1 : 0.7f * logs[t];
      double own = 0;
      for (std::int64_t c = 0; c < vw; ++c) {
        own += W[t * vw + c] * entry(y, d_.y, query + t, h, c);
      }
      for (std::int64_t j = 0; j <= i; ++j) {
        if (P(t, j) == 0) continue;
        double dp = 0;
        for (std::int64_t c = 0; c < vw; ++c) {
          double u = (1 - g) * entry(v_, d_.v, key + j, kv, c);
          if (j < i && g > 0) u += g * entry(y, d_.y, query + j, h, c);
          dp += W[t * vw + c] * u;
        }
        const double ds = P(t, j) * (dp - own);
        dbeta += ds * logs[t] * raw[t * m + j];
        dbeta_size += std::abs(ds * logs[t] * raw[t * m + j]);
        for (std::int64_t c = 0; c < w; ++c) {
          at(dq, d_.dq, query + t, h, c) += scale * tau * ds * entry(k_, d_.k, key + j, kv, c);
          at(dk, d_.dk, key + j, kv, c) += scale * tau * ds * entry(q_, d_.q, query + t, h, c);
        }
      }
    }
  }

  const Problem& p_;
  const Data& d_;
  Doubles q_, k_, v_, dy_, weights_;
};

void run(const cpu::Crew& crew, const Problem& p, Data& d, Math math) {
  if (p.gamma > 0) {
    cpu::attention(crew, math, Chacal{d.scores, d.v, d.gamma, {}, d.y, d.log_sum});
    cpu::attention(crew, math,
                   ChacalBackward{d.scores,
                                  d.v,
                                  d.y,
                                  d.dy,
                                  d.gamma,
                                  d.log_sum,
                                  {d.dq},
                                  {d.dk},
                                  {d.dv},
                                  d.beta ? Target(d.dbeta) : Target(),
                                  d.dgamma});
  } else {
    cpu::attention(crew, math, Attention{d.scores, d.v, d.y, d.log_sum});
    cpu::attention(crew, math,
                   AttentionBackward{d.scores,
                                     d.v,
                                     d.y,
                                     d.dy,
                                     d.log_sum,
                                     {d.dq},
                                     {d.dk},
                                     {d.dv},
                                     d.beta ? Target(d.dbeta) : Target()});
  }
}

/// The largest difference over the largest expected entry.
double difference(const Tensor& got, const Doubles& expected) {
  const Doubles values = got.to_doubles();
  double largest = 1e-3, worst = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double apart = std::abs(values[i] - expected[i]);
    if (!(apart <= worst)) worst = apart;  // NaN counts
  }
  return worst / largest;
}

/// Ragged, around the panel of 64 and the vector widths; longer than a chunk and a range.
const std::vector<std::int32_t> ragged{1, 5, 0, 16, 17, 63, 64, 65, 130, 41, 2};
const std::vector<std::int32_t> long_ones{600, 3, 321};
const std::vector<std::int32_t> few_queries{1, 3, 0, 70, 5};
const std::vector<std::int32_t> more_keys{9, 3, 4, 330, 65};

std::vector<Problem> problems() {
  std::vector<Problem> all{
      {.queries = ragged, .keys = ragged, .heads = 2, .group = 1, .width = 16, .value_width = 16},
      {.queries = ragged,
       .keys = ragged,
       .heads = 4,
       .group = 2,
       .width = 5,
       .value_width = 33,
       .temper = Temper::position},
      {.queries = long_ones,
       .keys = long_ones,
       .heads = 2,
       .group = 2,
       .width = 20,
       .value_width = 7,
       .temper = Temper::length},
      {.queries = long_ones,
       .keys = long_ones,
       .heads = 1,
       .group = 1,
       .width = 64,
       .value_width = 64,
       .temper = Temper::position,
       .window = 37},
      {.queries = long_ones,
       .keys = long_ones,
       .heads = 1,
       .group = 1,
       .width = 3,
       .value_width = 1,
       .window = 300},
      {.queries = few_queries,
       .keys = more_keys,
       .heads = 2,
       .group = 1,
       .width = 12,
       .value_width = 18,
       .temper = Temper::position},
      {.queries = {30, 100},
       .keys = {30, 100},
       .heads = 1,
       .group = 1,
       .width = 704,
       .value_width = 768},
      {.queries = {40, 90},
       .keys = {40, 90},
       .heads = 1,
       .group = 1,
       .width = 16,
       .value_width = 16,
       .gain = 20},
  };
  const std::size_t plain = all.size();
  for (std::size_t i = 0; i < plain; ++i) {
    Problem p = all[i];
    if (p.window > 0 || p.queries != p.keys || p.gain > 1) continue;
    p.gamma = 0.9;
    all.push_back(p);
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(softmax_and_chacal_agree_with_plain_loops_on_every_instruction_set) {
  const auto backend = make_cpu_backend();
  ThreadPool threads(2);
  int number = 0;
  for (const Problem& p : problems()) {
    Data expected_data(*backend, p);
    Plain plain(p, expected_data);
    for (const cpu::Isa isa : cpu::supported_isas()) {
      BOOST_TEST_CONTEXT("problem " << number << " on " << cpu::name_of(isa)) {
        Data d(*backend, p);
        run({threads, isa}, p, d, Math::exact);
        const double bound = 5e-6 * p.gain * p.gain;
        BOOST_TEST(difference(d.y.data, plain.y) < bound);
        BOOST_TEST(difference(d.log_sum, plain.log_sum) < bound);
        BOOST_TEST(difference(d.dq.data, plain.dq) < bound);
        BOOST_TEST(difference(d.dk.data, plain.dk) < bound);
        BOOST_TEST(difference(d.dv.data, plain.dv) < bound);
        if (d.beta) BOOST_TEST(std::abs(d.dbeta.item() - plain.dbeta) < bound * plain.dbeta_size);
        if (p.gamma > 0)
          BOOST_TEST(std::abs(d.dgamma.item() - plain.dgamma) < bound * plain.dgamma_size);
      }
    }
    ++number;
  }
}

// Operands rounded to bf16 (8 bits) in five chained products, and bf16 results.
BOOST_AUTO_TEST_CASE(bf16_activations_and_products_stay_near_the_plain_loops) {
  const auto backend = make_cpu_backend();
  ThreadPool threads(2);
  int number = 0;
  for (Problem p : problems()) {
    if (p.gain > 1) continue;
    for (const DType type : {DType::f32, DType::bf16}) {
      p.type = type;
      Data expected_data(*backend, p);
      Plain plain(p, expected_data);
      for (const cpu::Isa isa : cpu::supported_isas()) {
        for (const Math math : {Math::exact, Math::bf16}) {
          if (type == DType::f32 && math == Math::exact) continue;
          BOOST_TEST_CONTEXT("problem " << number << " on " << cpu::name_of(isa) << ", " << type
                                        << ", " << name_of(math)) {
            Data d(*backend, p);
            run({threads, isa}, p, d, math);
            const double bound = math == Math::exact ? 2e-2 : 5e-2;
            BOOST_TEST(difference(d.y.data, plain.y) < bound);
            BOOST_TEST(difference(d.log_sum, plain.log_sum) < bound);
            BOOST_TEST(difference(d.dq.data, plain.dq) < bound);
            BOOST_TEST(difference(d.dk.data, plain.dk) < bound);
            BOOST_TEST(difference(d.dv.data, plain.dv) < bound);
            if (d.beta) {
              BOOST_TEST(std::abs(d.dbeta.item() - plain.dbeta) < bound * plain.dbeta_size);
            }
            if (p.gamma > 0) {
              BOOST_TEST(std::abs(d.dgamma.item() - plain.dgamma) < bound * plain.dgamma_size);
            }
          }
        }
      }
    }
    ++number;
  }
}

BOOST_AUTO_TEST_CASE(gradients_are_added_where_asked) {
  const auto backend = make_cpu_backend();
  ThreadPool threads(2);
  for (Problem p : problems()) {
    if (p.width > 64) continue;
    Data once(*backend, p), twice(*backend, p);
    const cpu::Crew crew{threads, cpu::choose_isa()};
    run(crew, p, once, Math::exact);
    run(crew, p, twice, Math::exact);
    if (p.gamma > 0) {
      cpu::attention(crew, Math::exact,
                     ChacalBackward{twice.scores,
                                    twice.v,
                                    twice.y,
                                    twice.dy,
                                    twice.gamma,
                                    twice.log_sum,
                                    {twice.dq, true},
                                    {twice.dk, true},
                                    {twice.dv, true},
                                    Target(),
                                    {twice.dgamma, true}});
    } else {
      cpu::attention(crew, Math::exact,
                     AttentionBackward{twice.scores,
                                       twice.v,
                                       twice.y,
                                       twice.dy,
                                       twice.log_sum,
                                       {twice.dq, true},
                                       {twice.dk, true},
                                       {twice.dv, true}});
    }
    const auto doubled = [](const Tensor& x) {
      Doubles values = x.to_doubles();
      for (double& value : values) value *= 2;
      return values;
    };
    BOOST_TEST(difference(twice.dq.data, doubled(once.dq.data)) < 1e-6);
    BOOST_TEST(difference(twice.dk.data, doubled(once.dk.data)) < 1e-6);
    BOOST_TEST(difference(twice.dv.data, doubled(once.dv.data)) < 1e-6);
    if (p.gamma > 0) BOOST_TEST(difference(twice.dgamma, doubled(once.dgamma)) < 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_changes_no_bit_of_attention) {
  const auto backend = make_cpu_backend();
  for (const Problem& p : problems()) {
    std::vector<std::vector<Doubles>> results;
    for (const int count : {1, 2, 3, 8}) {
      ThreadPool threads(count);
      Data d(*backend, p);
      run({threads, cpu::choose_isa()}, p, d, Math::exact);
      results.push_back({d.y.data.to_doubles(), d.log_sum.to_doubles(), d.dq.data.to_doubles(),
                         d.dk.data.to_doubles(), d.dv.data.to_doubles(), d.dbeta.to_doubles(),
                         d.dgamma.to_doubles()});
      BOOST_TEST(results.front() == results.back());
    }
  }
}

BOOST_AUTO_TEST_CASE(chacal_with_gamma_0_is_softmax_attention_bit_for_bit) {
  const auto backend = make_cpu_backend();
  ThreadPool threads(2);
  const Problem p{
      .queries = ragged, .keys = ragged, .heads = 2, .group = 1, .width = 16, .value_width = 16};
  for (const cpu::Isa isa : cpu::supported_isas()) {
    Data a(*backend, p), b(*backend, p);
    run({threads, isa}, p, a, Math::exact);
    cpu::attention({threads, isa}, Math::exact, Chacal{b.scores, b.v, b.gamma, {}, b.y, b.log_sum});
    BOOST_TEST(a.y.data.to_doubles() == b.y.data.to_doubles());
    cpu::attention(
        {threads, isa}, Math::exact,
        ChacalBackward{b.scores, b.v, b.y, b.dy, b.gamma, b.log_sum, {b.dq}, {b.dk}, {b.dv}});
    BOOST_TEST(a.dq.data.to_doubles() == b.dq.data.to_doubles());
    BOOST_TEST(a.dk.data.to_doubles() == b.dk.data.to_doubles());
    BOOST_TEST(a.dv.data.to_doubles() == b.dv.data.to_doubles());
  }
}

BOOST_AUTO_TEST_CASE(chacal_continues_after_rows_in_a_cache) {
  const auto backend = make_cpu_backend();
  ThreadPool threads(2);
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
    run({threads, isa}, p, d, Math::exact);
    for (const std::int32_t fresh : {1, 5, 70, 150}) {
      // The last `fresh` rows of the first segment, their predecessors' outputs in a cache.
      const std::int32_t queries[] = {fresh}, keys[] = {150};
      const Segments q(*backend, queries), k(*backend, keys);
      const auto part = [&](const Heads& x) {
        return Heads{x.data.slice(150 - fresh, fresh), x.first_column, x.heads, x.width};
      };
      const Tensor y = Tensor::zeros(*backend, {fresh, heads * width}, DType::f32);
      const Scores scores{part(d.q), d.k, q, k, d.scores.scale};
      cpu::attention({threads, isa}, Math::exact,
                     Chacal{scores, d.v, d.gamma, d.y, {y, 0, heads, width}});
      BOOST_TEST(difference(y, part(d.y).data.to_doubles()) < 2e-6);
    }
  }
}

BOOST_AUTO_TEST_CASE(first_after_last_agrees_with_plain_loops_on_every_instruction_set) {
  const auto backend = make_cpu_backend();
  ThreadPool threads(2);
  std::vector<Problem> cases{
      {.queries = ragged, .keys = ragged, .heads = 2, .group = 1, .width = 16, .value_width = 16},
      {.queries = long_ones,
       .keys = long_ones,
       .heads = 4,
       .group = 2,
       .width = 5,
       .value_width = 33},
      {.queries = few_queries,
       .keys = more_keys,
       .heads = 2,
       .group = 1,
       .width = 64,
       .value_width = 20},
      {.queries = {30, 100},
       .keys = {30, 100},
       .heads = 1,
       .group = 1,
       .width = 300,
       .value_width = 64},
  };
  // How far back a match lies: anywhere near, or beyond several blocks for rare agreeing keys.
  for (const double share : {1.0, 0.005, 0.0}) {
    for (const Problem& p : cases) {
      Data drawn(*backend, p);
      if (share < 1) {  // q > 0 and k < 0 but for a few keys
        Rng rng(3, Purpose::test);
        float* const q = drawn.q.data.data<float>();
        for (std::int64_t i = 0; i < drawn.q.data.size(); ++i) q[i] = std::abs(q[i]);
        float* const k = drawn.k.data.data<float>();
        for (std::int64_t j = 0; j < drawn.k.data.rows(); ++j) {
          const float sign = static_cast<double>(rng.uniform()) < share ? 1.0f : -1.0f;
          for (std::int64_t c = 0; c < p.heads / p.group * p.width; ++c) {
            float& x = k[j * drawn.k.data.columns() + 1 + c];
            x = sign * std::abs(x);
          }
        }
      }
      const Doubles q = drawn.q.data.to_doubles(), k = drawn.k.data.to_doubles(),
                    v = drawn.v.data.to_doubles(), dy = drawn.dy.data.to_doubles();
      std::vector<std::int32_t> match(drawn.match.size(), -1);
      Doubles y(drawn.y.data.size(), 0), dq(drawn.dq.data.size(), 0), dk(drawn.dk.data.size(), 0),
          dv(drawn.dv.data.size(), 0);
      const auto place = [](const Heads& x, std::int64_t row, std::int64_t h) {
        return row * x.data.columns() + x.first_column + h * x.width;
      };
      for (std::size_t s = 0; s < p.queries.size(); ++s) {
        const std::int64_t key = drawn.keys.begins()[s];
        for (std::int64_t t = 0; t < p.queries[s]; ++t) {
          const std::int64_t i = drawn.queries.begins()[s] + t;
          for (std::int64_t h = 0; h < p.heads; ++h) {
            const std::int64_t kv = h / p.group, at_q = place(drawn.q, i, h);
            double score = 0;
            std::int64_t m = p.keys[s] - p.queries[s] + t - 1;
            for (; m >= 0; --m) {
              score = 0;
              for (std::int64_t c = 0; c < p.width; ++c) {
                score += q[at_q + c] * k[place(drawn.k, key + m, kv) + c];
              }
              if (score > 0) break;
            }
            match[i * p.heads + h] = static_cast<std::int32_t>(m);
            if (m < 0) continue;
            const std::int64_t at_v = place(drawn.v, key + m + 1, kv);
            const std::int64_t at_k = place(drawn.k, key + m, kv), at_y = place(drawn.y, i, h);
            double g = 0;
            for (std::int64_t c = 0; c < p.value_width; ++c) {
              y[at_y + c] = score * v[at_v + c];
              dv[at_v + c] += score * dy[at_y + c];
              g += dy[at_y + c] * v[at_v + c];
            }
            for (std::int64_t c = 0; c < p.width; ++c) {
              dq[at_q + c] = g * k[at_k + c];
              dk[at_k + c] += g * q[at_q + c];
            }
          }
        }
      }
      for (const cpu::Isa isa : cpu::supported_isas()) {
        for (const int count : {1, 3}) {
          BOOST_TEST_CONTEXT("share " << share << ", width " << p.width << ", "
                                      << cpu::name_of(isa)) {
            ThreadPool crew(count);
            Data d(*backend, p);
            d.q = drawn.q;
            d.k = drawn.k;
            d.v = drawn.v;
            cpu::attention({crew, isa}, Fal{d.q, d.k, d.v, d.queries, d.keys, d.y, d.match});
            BOOST_TEST(d.match.to_ints() == match);
            BOOST_TEST(difference(d.y.data, y) < 2e-6);
            cpu::attention(
                {crew, isa},
                FalBackward{
                    d.q, d.k, d.v, d.queries, d.keys, d.match, d.dy, {d.dq}, {d.dk}, {d.dv}});
            BOOST_TEST(difference(d.dq.data, dq) < 2e-6);
            BOOST_TEST(difference(d.dk.data, dk) < 2e-6);
            BOOST_TEST(difference(d.dv.data, dv) < 2e-6);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
