#include <functional>
#include <map>
#include "tests/check.h"

#include "core/contract/elementwise.h"
#include "core/contract/optimizer.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/gemm/kept_panels.h"
#include "core/rng.h"
#include "nn/models/decoder.h"
#include "tests/altered_backend.h"
#include "tests/training.h"

BOOST_AUTO_TEST_SUITE(steady_values_test)

// Tests the cache of packed panels (core/cpu/gemm/kept_panels.h). Panels are cached for steady
// operands, whose values are declared not to change. They give the same bits as fresh packing, and
// are never used after the values of the operand have changed.

using namespace longhand;
using namespace longhand::cpu;

namespace {

std::vector<double> normals(std::int64_t count, std::uint32_t stream) {
  Rng rng(5, Purpose::test, 0, stream);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& x : values) x = rng.normal();
  return values;
}

Tensor normal_tensor(Backend& backend, const Shape& shape, std::uint32_t stream,
                     DType type = DType::f32) {
  return Tensor::from(backend, shape, type, normals(shape.size(), stream));
}

constexpr std::int64_t in_width = 300, out_width = 170;

std::vector<double> product(const Tensor& x, const Tensor& weight, bool transposed, Math math) {
  const Tensor y(x.backend(), {x.rows(), transposed ? weight.rows() : weight.columns()}, x.dtype());
  x.backend()(Matmul{.a = x, .b = weight, .transpose_b = transposed, .c = y, .math = math});
  return y.to_doubles();
}

constexpr Math maths[] = {Math::exact, Math::fast, Math::bf16};

}  // namespace

BOOST_AUTO_TEST_CASE(products_with_kept_panels_have_the_same_bits) {
  for (const Isa isa : supported_isas()) {
    for (const int threads : {1, 2}) {
      const auto backend = make_cpu_backend({.threads = threads}, isa);
      for (const DType type : {DType::f32, DType::bf16}) {
        const Tensor weight = normal_tensor(*backend, {out_width, in_width}, 1, type);
        for (const Math math : maths) {
          for (const std::int64_t rows : {1, 5, 33, 260, 700, 2500}) {
            const Tensor x = normal_tensor(*backend, {rows, in_width}, 2);
            const Tensor dy = normal_tensor(*backend, {rows, out_width}, 3);
            const Tensor part = weight.slice(20, 64);
            const auto all = [&] {
              return std::vector{product(x, weight, true, math), product(dy, weight, false, math),
                                 product(x, part, true, math)};
            };
            const auto expected = all();
            const SteadyValues steady(*backend, {weight});
            BOOST_CHECK(all() == expected);  // packs the panels
            BOOST_CHECK(all() == expected);  // uses the cached panels
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(changed_values_are_packed_again) {
  const auto backend = make_cpu_backend({.threads = 2});
  const std::int64_t count = out_width * in_width;
  const Tensor x = normal_tensor(*backend, {64, in_width}, 2);
  const Tensor other = normal_tensor(*backend, {out_width, in_width}, 4);
  const auto vector = [&](std::uint32_t stream) {
    return normal_tensor(*backend, {out_width, in_width}, stream);
  };
  const std::map<std::string, std::function<void(const Tensor&)>> ways = {
      {"assign", [&](const Tensor& w) { w.assign(normals(count, 7)); }},
      {"a part", [&](const Tensor& w) { w.slice(100, 1).assign(normals(in_width, 7)); }},
      {"Copy", [&](const Tensor& w) { (*backend)(Copy{.x = other, .y = w}); }},
      {"Fill", [&](const Tensor& w) { (*backend)(Fill{.value = 3, .y = w}); }},
      {"Matmul",
       [&](const Tensor& w) {
         (*backend)(Matmul{.a = normal_tensor(*backend, {out_width, 9}, 8),
                           .b = normal_tensor(*backend, {9, in_width}, 9),
                           .c = w});
       }},
      {"Sgd",
       [&](const Tensor& w) {
         (*backend)(Sgd{.parameters = {w},
                        .gradients = {other},
                        .velocities = {vector(10)},
                        .decay = {0},
                        .rate = Tensor::from(*backend, {1}, DType::f32, std::vector{0.1})});
       }},
      {"Adam",
       [&](const Tensor& w) {
         const auto now = adam_now(0.1, 1);
         (*backend)(Adam{.parameters = {w},
                         .gradients = {other},
                         .m = {Tensor::zeros(*backend, w.shape(), DType::f32)},
                         .v = {Tensor::zeros(*backend, w.shape(), DType::f32)},
                         .decay = {0},
                         .now = Tensor::from(*backend, {3}, DType::f32, now)});
       }},
  };
  for (const auto& [name, change] : ways) {
    const Tensor weight = vector(1);
    const auto before = product(x, weight, true, Math::fast);
    std::vector<double> after;
    {
      const SteadyValues steady(*backend, {weight});
      product(x, weight, true, Math::fast);
      change(weight);
      after = product(x, weight, true, Math::fast);
    }
    BOOST_CHECK_MESSAGE(after != before, name);
    BOOST_CHECK_MESSAGE(after == product(x, weight, true, Math::fast), name);
  }
}

BOOST_AUTO_TEST_CASE(panels_are_kept_until_the_end_and_counted) {
  const auto backend = make_cpu_backend({.threads = 1});
  const Tensor x = normal_tensor(*backend, {64, in_width}, 2);
  const Tensor weight = normal_tensor(*backend, {out_width, in_width}, 1);
  const std::size_t live = backend->memory().use().live;
  const auto before = product(x, weight, true, Math::fast);
  float& first = *weight.data<float>();
  const float value = first;
  {
    const SteadyValues steady(*backend, {weight});
    product(x, weight, true, Math::fast);
    BOOST_TEST(backend->memory().use().live > live);
    // The backend is not told about this change, so the cached panels still have the old values.
    first = 1e3f;
    BOOST_CHECK(product(x, weight, true, Math::fast) == before);
  }
  BOOST_TEST(backend->memory().use().live == live);
  BOOST_CHECK(product(x, weight, true, Math::fast) != before);
  const SteadyValues again(*backend, {weight});
  BOOST_CHECK(product(x, weight, true, Math::fast) != before);
  first = value;
}

BOOST_AUTO_TEST_CASE(memory_for_panels_is_limited) {
  CachingAllocator memory("test", host_memory());
  KeptPanels kept(memory);
  std::vector<std::byte> values(1000);
  kept.begin({{values.data(), values.size()}});
  const auto find = [&](std::size_t at, std::size_t bytes) {
    return kept.find({.data = values.data() + at,
                      .type = DType::f32,
                      .transposed = false,
                      .ld = 2,
                      .n = 2,
                      .k = 2,
                      .format = nullptr},
                     bytes);
  };
  BOOST_TEST(find(0, KeptPanels::most_bytes + 1) == nullptr);
  KeptPanels::Panels* const some = find(0, std::size_t{60} << 20);
  BOOST_REQUIRE(some);
  BOOST_TEST(find(0, std::size_t{60} << 20) == some);
  std::size_t count = 1;
  while (find(16 * count, std::size_t{60} << 20)) ++count;
  BOOST_TEST(count == 4u);
  BOOST_TEST(memory.use().live <= KeptPanels::most_bytes);
  BOOST_TEST(find(992, 64) == nullptr);  // the operand extends beyond the bytes declared as steady
  kept.forget(values.data() + 8, 1);
  BOOST_TEST(find(0, 64) == nullptr);
  kept.end();
  BOOST_TEST(memory.use().live == 0u);
}

BOOST_AUTO_TEST_CASE(kept_panels_change_no_bit_of_training) {
  // make_altered_backend() forwards operations to another backend, but does not tell it which
  // values are steady. So training on it caches no panels. Both trainings must have the same bits.
  const nn::BatchSource batches = [](std::int64_t step, std::int64_t place) {
    Rng rng(7, Purpose::data, static_cast<std::uint64_t>(step), static_cast<std::uint32_t>(place));
    nn::Batch batch{.lengths = {20, 13}};
    for (int i = 0; i < 33; ++i) {
      const auto token = static_cast<std::int32_t>(rng.below(11));
      batch.tokens.push_back(token);
      batch.targets.push_back((5 * token + 2) % 11);
    }
    return batch;
  };
  const nn::DecoderConfig config{.vocabulary = 11,
                                 .width = 64,
                                 .layers = 2,
                                 .mixers = nn::parse_layers("softmax:3,fal:1", 64),
                                 .inner = 96};
  for (const Math math : maths) {
    for (const int threads : {1, 2}) {
      const auto trained = [&](const std::shared_ptr<Backend>& backend) {
        nn::Decoder model(*backend, config, 3);
        const nn::TrainerOptions options{.steps = 5,
                                         .parts = 4,
                                         .accumulation = 2,
                                         .schedule = {.peak = 1e-2, .warm_up = 2, .steps = 12}};
        const auto losses = train_losses(model, batches, options);
        return std::pair(losses, values_of(model));
      };
      const BackendOptions options{.threads = threads, .math = math};
      BOOST_CHECK(trained(make_cpu_backend(options)) ==
                  trained(make_altered_backend(make_cpu_backend(options))));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
