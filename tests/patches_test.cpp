#include "autograd/patches.h"

#include <limits>

#include "autograd/gradcheck.h"
#include "autograd/tape.h"
#include "core/backend.h"
#include "core/contract/steps.h"
#include "nn/layers/conv2d.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(patches_test)

using namespace longhand;

namespace {

Tensor images(Backend& backend, const Shape& shape) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    values.push_back(static_cast<double>(i * i * 7 % 23) - 11);
  }
  return Tensor::from(backend, shape, DType::f64, values);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_convolution_equals_its_definition) {
  const auto backend = make_reference_backend();
  nn::Parameters parameters(*backend, {DType::f64}, 1);
  for (const PatchOptions options : {PatchOptions{3, 1, 1}, PatchOptions{3, 2, 0},
                                     PatchOptions{2, 3, 1}, PatchOptions{4, 2, 3}}) {
    const nn::Scope scope = nn::Scope(parameters) / options.size / options.stride;
    const nn::Conv2d conv(scope, 2, 3, options);
    const Tensor x = images(*backend, {2, 5, 6, 2});
    const Var y = conv(x);
    const auto pixels = x.to_doubles(), weight = conv.weight.value().to_doubles(),
               result = y.value().to_doubles();
    const Shape& shape = y.shape();
    BOOST_TEST(shape[1] == (5 + 2 * options.padding - options.size) / options.stride + 1);
    BOOST_TEST(shape[2] == (6 + 2 * options.padding - options.size) / options.stride + 1);
    std::size_t at = 0;
    for_each_index(shape, [&](const Index& i) {
      double sum = 0;
      for (std::int64_t a = 0; a < options.size; ++a) {
        for (std::int64_t b = 0; b < options.size; ++b) {
          const std::int64_t row = i[1] * options.stride + a - options.padding;
          const std::int64_t column = i[2] * options.stride + b - options.padding;
          if (row < 0 || row >= 5 || column < 0 || column >= 6) continue;
          for (std::int64_t c = 0; c < 2; ++c) {
            const std::int64_t input = (a * options.size + b) * 2 + c;
            const std::int64_t pixel = ((i[0] * 5 + row) * 6 + column) * 2 + c;
            sum +=
                weight[static_cast<std::size_t>(i[3] * 2 * options.size * options.size + input)] *
                pixels[static_cast<std::size_t>(pixel)];
          }
        }
      }
      BOOST_TEST(result[at++] == sum, boost::test_tools::tolerance(1e-10));
    });
    BOOST_TEST(at == result.size());
  }
}

BOOST_AUTO_TEST_CASE(pooling_ignores_the_remainder) {
  const auto backend = make_reference_backend();
  const Tensor x = Tensor::from(*backend, {1, 3, 2, 1}, DType::f64, {{1.0, -2, 5, 3, 99, 99}});
  BOOST_TEST(max_pool(x, 2).value().to_doubles() == std::vector<double>{5});
  BOOST_TEST(mean_pool(x, 2).value().to_doubles() == std::vector<double>{1.75});
  BOOST_TEST(max_pool(x, 2).shape() == Shape({1, 1, 1, 1}));
}

BOOST_AUTO_TEST_CASE(no_images_have_no_patches) {
  for (const auto& backend : {make_reference_backend(), make_cpu_backend({.threads = 1})}) {
    nn::Parameters parameters(*backend, {DType::f32}, 1);
    const nn::Conv2d conv(nn::Scope(parameters) / "conv", 2, 3, {.size = 3, .padding = 1});
    Tape tape;
    Var y;
    {
      const Recording recording(tape);
      y = max_pool(conv(Tensor(*backend, {0, 5, 6, 2}, DType::f32)), 2);
    }
    BOOST_TEST(y.shape() == Shape({0, 2, 3, 3}));
    tape.backward(y, Tensor(*backend, y.shape(), DType::f32));
    BOOST_TEST(conv.weight.var().grad().to_doubles() == std::vector<double>(54));
  }
}

BOOST_AUTO_TEST_CASE(impossible_patches_are_refused) {
  const auto backend = make_reference_backend();
  const Tensor x = images(*backend, {1, 2, 4, 3});
  nn::Parameters parameters(*backend, {DType::f64}, 1);
  const nn::Conv2d conv(nn::Scope(parameters) / "conv", 2, 3, {.size = 2});
  const auto refused = [&](const PatchOptions& options, const std::string& message) {
    expect_refusal([&] { patches(x, options); }, "patches: " + message);
  };
  refused({.size = 3},
          "x: expected a height of at least 3 for patches of size 3 and a padding of 0, got 2 in "
          "the shape [1, 2, 4, 3]");
  refused({.size = 7, .padding = 2}, "x: expected a height of at least 3");
  refused({.size = 0}, "size: expected 1 to 4096, got 0");
  refused({.size = std::int64_t{1} << 40}, "size: expected 1 to 4096, got 1099511627776");
  refused({.size = 2, .stride = 0}, "stride: expected 1 to 4096, got 0");
  refused({.size = 2, .padding = 2}, "padding: expected 0 to 1, got 2");
  refused({.size = 2, .padding = -1}, "padding: expected 0 to 1, got -1");
  const Tensor huge(*backend, {0, std::numeric_limits<std::int64_t>::max(), 4, 3}, DType::f64);
  expect_refusal([&] { patches(huge, {.size = 3, .padding = 2}); },
                 "patches: x: expected a height, width and number of channels of at most");
  const Tensor wide = images(*backend, {1, 1, 1, 1 << 16});
  expect_refusal([&] { patches(wide, {.size = 4096, .padding = 4095}); },
                 "patches: expected fewer than 2^63 numbers in all patches, got 1 x 4096 x 4096 "
                 "patches of 1099511627776 numbers");
  expect_refusal([&] { mean_pool(x, 3); }, "mean_pool: x: expected a height of at least 3");
  expect_refusal([&] { patches(x.reshape({4, 6}), {}); }, "expected [images, height");
  expect_refusal([&] { max_pool(x.reshape({4, 6}), 2); }, "max_pool: x: expected [images");
  expect_refusal(
      [&] { conv(x); },
      "layer conv: expected an input with the last dimension 2, got the shape [1, 2, 4, 3]");
}

BOOST_AUTO_TEST_CASE(impossible_convolutions_are_refused) {
  const auto backend = make_reference_backend();
  nn::Parameters parameters(*backend, {DType::f64}, 1);
  const nn::Scope scope = nn::Scope(parameters) / "conv";
  const auto refused = [&](std::int64_t in, std::int64_t out, const PatchOptions& options,
                           const std::string& message) {
    expect_refusal([&] { nn::Conv2d(scope, in, out, options); }, "layer conv: " + message);
  };
  refused(2, 3, {.size = 0}, "size: expected 1 to 4096, got 0");
  refused(2, 3, {.size = std::int64_t{1} << 32}, "size: expected 1 to 4096, got 4294967296");
  refused(2, 3, {.stride = -1}, "stride: expected 1 to 4096, got -1");
  refused(2, 3, {.padding = 1}, "padding: expected 0 to 0, got 1");
  refused(0, 3, {}, "expected 1 to 2147483648 input channels and output channels, got 0 and 3");
  refused(
      2, std::int64_t{1} << 62, {},
      "expected 1 to 2147483648 input channels and output channels, got 2 and 4611686018427387904");
  nn::Conv2d conv(scope, 2, 3, {.size = 2});
  conv.patch.size = 0;
  expect_refusal(
      [&] {
        conv(images(*backend, {1, 2, 4, 2}));
      },
      "layer conv: size: expected 1 to 4096, got 0");
}

BOOST_AUTO_TEST_SUITE_END()
