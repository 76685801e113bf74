#include "core/elementary.h"

#include <cmath>
#include <limits>
#include "tests/check.h"

#include "core/rng.h"
#include "core/sha256.h"

BOOST_AUTO_TEST_SUITE(elementary_test)

using namespace longhand;

// The exact values are those of the C library in a type with a longer significand.

namespace {

/// |got - exact| in units in the last place of f64.
double units(double got, long double exact) {
  const double size = std::max(std::abs(static_cast<double>(exact)), 0x1p-1022);
  return static_cast<double>(std::abs(got - exact)) / (std::nextafter(size, 1e308) - size);
}

/// Largest error of f over numbers x that are uniform in [low, high).
template <class F, class Exact>
double worst(double low, double high, F&& f, Exact&& exact) {
  Rng rng(1, Purpose::test);
  double most = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = low + (high - low) * rng.uniform();
    most = std::max(most, units(f(x), exact(static_cast<long double>(x))));
  }
  return most;
}

using Wide = long double;
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

BOOST_AUTO_TEST_CASE(errors_are_small) {
  using namespace elementary;
  const auto expl = [](Wide x) { return std::exp(x); };
  const auto logl = [](Wide x) { return std::log(x); };
  const auto expm1l = [](Wide x) { return std::expm1(x); };
  const auto erfcl = [](Wide x) { return std::erfc(x); };
  const auto tenl = [](Wide x) { return std::pow(Wide(10), x); };
  for (const double size : {1e-9, 1e-3, 0.5, 2.0, 700.0}) {
    BOOST_TEST(worst(-size, size, elementary::exp, expl) <= 2);
    BOOST_TEST(worst(-size, size, elementary::expm1, expm1l) <= 5);
    BOOST_TEST(worst(1e-300, size, elementary::log, logl) <= 2);
    BOOST_TEST(worst(1 - std::min(size, 0.9), 1 + size, elementary::log, logl) <= 2);
  }
  BOOST_TEST(worst(
                 -3, 3, [](double x) { return power(10, x); }, tenl) <= 16);
  BOOST_TEST(worst(-6, 6, elementary::erfc, erfcl) <= 200);
  for (const double size : {1.0, 7.0, 1e4, 2.1e9, 1e12, 3e38}) {
    Rng rng(2, Purpose::test);
    for (int i = 0; i < 2000; ++i) {
      const double x = size * (2 * rng.uniform() - 1);
      BOOST_TEST(std::abs(elementary::sin(x) - std::sin(x)) <= 0x1p-50, x);
      BOOST_TEST(std::abs(elementary::cos(x) - std::cos(x)) <= 0x1p-50, x);
    }
  }
}

BOOST_AUTO_TEST_CASE(special_arguments_have_the_results_of_the_c_library) {
  using namespace elementary;
  const double nan = std::nan("");
  BOOST_TEST(elementary::exp(0) == 1);
  BOOST_TEST(elementary::exp(infinity) == infinity);
  BOOST_TEST(elementary::exp(-infinity) == 0);
  BOOST_TEST(elementary::exp(-745) == 0x1p-1074);
  BOOST_TEST(elementary::log(1) == 0);
  BOOST_TEST(elementary::log(0) == -infinity);
  BOOST_TEST(elementary::log(infinity) == infinity);
  BOOST_TEST(elementary::log(0x1p-1074) == std::log(0x1p-1074));
  BOOST_TEST(elementary::cos(0) == 1);
  for (const double x : {elementary::exp(nan), elementary::log(nan), elementary::log(-1),
                         elementary::sin(nan), elementary::cos(infinity)}) {
    BOOST_TEST(std::isnan(x));
  }
}

BOOST_AUTO_TEST_CASE(results_have_the_same_bits_on_every_machine) {
  Sha256 hash;
  const auto add = [&](double x) { hash.add(std::as_bytes(std::span(&x, 1))); };
  Rng rng(3, Purpose::test);
  for (int i = 0; i < 20000; ++i) {
    const double u = rng.uniform();
    add(elementary::exp(1024 * u - 512));
    add(elementary::expm1(u));
    add(elementary::log(u + 0x1p-60));
    add(elementary::power(10000, -u));
    add(elementary::erfc(16 * u - 8));
    add(elementary::sin(8192 * u));
    add(elementary::cos(0x1p100 * u));
    add(rng.normal());
  }
  BOOST_TEST(hash.finish() == "a08521188cc435b66b0b4ae2abe9b4987f61670640394b2ee7415fb1fd0338a2");
}

BOOST_AUTO_TEST_SUITE_END()
