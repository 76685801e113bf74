#include <cmath>
#include "tests/check.h"

#include "autograd/combine.h"
#include "autograd/cumulate.h"
#include "tests/head_problem.h"

BOOST_AUTO_TEST_SUITE(attention_decoding_test)

using namespace longhand;

// Tests that every mechanism gives the same outputs whether tokens are decoded one by one, in
// chunks of any size, or all at once. The cache has unused rows between the sequences.

namespace {

enum class Kind { softmax, tempered, forgetting, windowed, fal, chacal };

constexpr std::int64_t heads = 4, key_heads = 2, width = 5, v_width = 3;

struct Cache {
  Tensor k, v, y;
  std::vector<std::int32_t> begins, lengths;
};

/// Returns the outputs of a mechanism for the last tokens of each sequence. `queries` describes
/// these tokens, and `keys` describes all tokens of the sequences. `earlier` contains the outputs
/// of the tokens before the queries, which only ChaCAL reads.
Heads outputs(Kind kind, Backend& backend, const Tensor& q, const Segments& queries, const Heads& k,
              const Heads& v, const Segments& keys, const Heads& earlier) {
  ScoreVars s{.q = {Var(q), 0, heads, width},
              .k = {Var(k.data), 0, key_heads, width},
              .queries = queries,
              .keys = keys};
  const HeadVars values{Var(v.data), 0, key_heads, v_width};
  const auto number = [&](double x) {
    return Tensor::from(backend, {1}, master_type(q.dtype()), std::vector<double>{x});
  };
  Var y;
  switch (kind) {
    case Kind::fal:
      y = fal({.q = s.q, .k = s.k, .v = values, .queries = queries, .keys = keys}).y;
      break;
    case Kind::chacal:
      y = chacal(s, values, number(0.9), earlier);
      break;
    case Kind::tempered:
      s.multiplier =
          multiply(log_counts(backend, master_type(q.dtype()), queries, keys, heads), number(0.8));
      y = attention(s, values);
      break;
    case Kind::forgetting:
      s.decay = cumulate(
          Tensor::from(backend, {k.data.rows(), heads}, master_type(q.dtype()),
                       std::vector<double>(static_cast<std::size_t>(k.data.rows() * heads), -0.3)),
          keys);
      y = attention(
          s, values,
          SoftmaxVars{multiply(number(0.5), Tensor::from(backend, {heads}, master_type(q.dtype()),
                                                         std::vector<double>{1, -1, 0, 2}))});
      break;
    case Kind::windowed:
      s.window = 4;
      y = attention(s, values);
      break;
    default:
      y = attention(s, values);
  }
  return {y.value(), 0, heads, v_width};
}

/// A cache with room for all tokens of each sequence, and unused rows between the sequences.
Cache empty_cache(Backend& backend, const HeadProblem& p) {
  const DType type = p.q.dtype();
  Cache cache;
  std::int32_t room = 0;
  for (const std::int32_t n : p.segments.lengths()) {
    cache.begins.push_back(room + 2);
    cache.lengths.push_back(0);
    room += n + 5;
  }
  cache.k = Tensor::zeros(backend, {room, key_heads * width}, type);
  cache.v = Tensor::zeros(backend, {room, key_heads * v_width}, type);
  cache.y = Tensor::zeros(backend, {room, heads * v_width}, type);
  return cache;
}

/// Decodes all sequences together, each in chunks of random size up to `largest` tokens. Returns
/// the outputs in the order of the tokens.
std::vector<double> decode(Kind kind, Backend& backend, const HeadProblem& p, Rng& chunks,
                           std::uint32_t largest) {
  const DType type = p.q.dtype();
  const std::size_t count = p.segments.lengths().size();
  Cache cache = empty_cache(backend, p);
  std::vector<double> all(static_cast<std::size_t>(p.segments.tokens() * heads * v_width));
  const std::vector<double> q = p.q.to_doubles(), k = p.k.to_doubles(), v = p.v.to_doubles();
  for (bool more = true; more;) {
    // Number of tokens of each sequence to decode in this round. It is 0 for some sequences.
    std::vector<std::int32_t> now(count);
    std::vector<std::int64_t> rows;
    more = false;
    for (std::size_t s = 0; s < count; ++s) {
      const std::int32_t left = p.segments.lengths()[s] - cache.lengths[s];
      now[s] = std::min<std::int32_t>(left, static_cast<std::int32_t>(chunks.below(largest + 1)));
      if (largest == 1) now[s] = std::min(left, 1);
      for (std::int32_t t = 0; t < now[s]; ++t) {
        rows.push_back(p.segments.begins()[s] + cache.lengths[s] + t);
      }
      cache.lengths[s] += now[s];
      more = more || cache.lengths[s] < p.segments.lengths()[s];
    }
    const auto picked = [&](const std::vector<double>& x, std::int64_t columns) {
      std::vector<double> part;
      for (const std::int64_t row : rows) {
        for (std::int64_t c = 0; c < columns; ++c) {
          part.push_back(x[static_cast<std::size_t>(row * columns + c)]);
        }
      }
      return Tensor::from(backend, {static_cast<std::int64_t>(rows.size()), columns}, type, part);
    };
    const Segments queries(backend, now), keys(backend, cache.begins, cache.lengths);
    const Heads new_k{picked(k, key_heads * width), 0, key_heads, width};
    const Heads new_v{picked(v, key_heads * v_width), 0, key_heads, v_width};
    const Heads old_k{cache.k, 0, key_heads, width}, old_v{cache.v, 0, key_heads, v_width};
    const Heads old_y{cache.y, 0, heads, v_width};
    backend(Append{.x = new_k, .from = queries, .y = old_k, .to = keys});
    backend(Append{.x = new_v, .from = queries, .y = old_v, .to = keys});
    const Heads y =
        outputs(kind, backend, picked(q, heads * width), queries, old_k, old_v, keys, old_y);
    backend(Append{.x = y, .from = queries, .y = old_y, .to = keys});
    const std::vector<double> part = y.data.to_doubles();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::int64_t c = 0; c < heads * v_width; ++c) {
        all[static_cast<std::size_t>(rows[i] * heads * v_width + c)] =
            part[i * heads * v_width + static_cast<std::size_t>(c)];
      }
    }
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(outputs_are_the_same_for_any_chunks) {
  struct Setting {
    const char* name;
    DType type;
    double tolerance;  // maximum error of an output; outputs are between -3 and 3
  };
  for (const auto& [name, type, tolerance] : {Setting{"reference", DType::f32, 1e-5},
                                              {"cpu", DType::f32, 1e-5},
                                              {"cpu", DType::bf16, 3e-2}}) {
    const auto backend = make_backend(name);
    const HeadProblem p(*backend, type, {21, 1, 70, 9}, heads, key_heads, width, v_width);
    for (const Kind kind : {Kind::softmax, Kind::tempered, Kind::forgetting, Kind::windowed,
                            Kind::fal, Kind::chacal}) {
      const Heads k{p.k, 0, key_heads, width}, v{p.v, 0, key_heads, v_width};
      const std::vector<double> once =
          outputs(kind, *backend, p.q, p.segments, k, v, p.segments, {}).data.to_doubles();
      for (const std::uint32_t largest : {1u, 2u, 7u, 40u, 100u}) {
        Rng chunks(largest, Purpose::test);
        const std::vector<double> decoded = decode(kind, *backend, p, chunks, largest);
        double worst = 0;
        for (std::size_t i = 0; i < once.size(); ++i) {
          worst = std::max(worst, std::abs(decoded[i] - once[i]));
        }
        BOOST_TEST_CONTEXT(name << ", " << type << ", mechanism " << static_cast<int>(kind)
                                << ", chunks up to " << largest) {
          BOOST_TEST(worst < tolerance);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
