#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>
#include "tests/check.h"

#include "core/cpu/isa.h"
#include "tests/simd_probe.h"

BOOST_AUTO_TEST_SUITE(vector_math_test)

// Compares every vector function with libm in f64. The inputs are the floats of evenly spread
// 32-bit patterns: all exponents, both signs, subnormals, infinities and NaNs.

using namespace longhand;
using namespace longhand::cpu;

namespace {

/// The error of `got` in units of the last place of f32 at `want`. Infinity is treated as the
/// number 2^128, which would follow the largest float.
double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (std::isnan(got)) return std::numeric_limits<double>::infinity();
  if (static_cast<double>(got) == want) return 0;
  const double next = std::ldexp(1.0, 128);
  const auto finite = [&](double v) { return v > next ? next : v < -next ? -next : v; };
  const double unit =
      std::ldexp(1.0, std::max(want == 0 ? -126 : std::ilogb(finite(want)), -126) - 23);
  return std::fabs(finite(static_cast<double>(got)) - finite(want)) / unit;
}

double sigmoid_f64(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

/// Compares the largest error of one function over all inputs with `bound`, for each instruction
/// set.
void sweep(const std::string& name, SimdProbe::Map SimdProbe::*function, double (*truth)(double),
           double bound, bool nonnegative = false) {
  constexpr std::uint32_t stride = 1021;  // prime, so that all low bit patterns occur
  std::vector<float> x, y;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += stride) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!nonnegative || !(value < 0)) x.push_back(value);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value :
       {0.0f, infinity, 1.0f, 88.72284f, 88.7229f, 0.625f, std::numeric_limits<float>::min(),
        std::numeric_limits<float>::denorm_min()}) {
    x.push_back(value);
    if (!nonnegative) x.push_back(-value);
  }
  std::vector<double> want(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) want[i] = truth(static_cast<double>(x[i]));
  y.resize(x.size());
  for (const Isa isa : supported_isas()) {
    (kernels_for<SimdProbe>(isa).*function)(x.data(), y.data(), std::ssize(x));
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (const double error = ulps(y[i], want[i]); error > worst) {
        worst = error;
        at = i;
      }
    }
    BOOST_TEST_MESSAGE(name << " on " << name_of(isa) << ": " << worst << " ulp of " << bound
                            << " at " << x[at]);
    BOOST_TEST(worst <= bound, name << " on " << name_of(isa) << ": " << worst << " ulp at "
                                    << x[at] << " gives " << y[at] << ", expected " << want[at]);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_error_measure_detects_wrong_signs_nans_and_overflow) {
  BOOST_TEST(ulps(1.0f, 1.0) == 0);
  BOOST_TEST(ulps(std::nextafter(1.0f, 2.0f), 1.0) == 1);
  BOOST_TEST(ulps(-1.0f, 1.0) > 1e6);
  BOOST_TEST(ulps(std::nanf(""), 1.0) > 1e6);
  BOOST_TEST(ulps(1.0f, std::nan("")) > 1e6);
  BOOST_TEST(ulps(std::numeric_limits<float>::infinity(), 1e300) == 0);
  BOOST_TEST(ulps(1e30f, 1e300) > 1e6);
  BOOST_TEST(ulps(std::numeric_limits<float>::denorm_min(), 0.0) == 1);
}

BOOST_AUTO_TEST_CASE(exp_is_within_its_bound) { sweep("exp", &SimdProbe::exp, std::exp, 1.1); }
BOOST_AUTO_TEST_CASE(log_is_within_its_bound) { sweep("log", &SimdProbe::log, std::log, 1.0); }
BOOST_AUTO_TEST_CASE(log1p_is_within_its_bound) {
  sweep("log1p", &SimdProbe::log1p, std::log1p, 1.5, true);
}
BOOST_AUTO_TEST_CASE(tanh_is_within_its_bound) { sweep("tanh", &SimdProbe::tanh, std::tanh, 2.5); }
BOOST_AUTO_TEST_CASE(erf_is_within_its_bound) { sweep("erf", &SimdProbe::erf, std::erf, 2.1); }
BOOST_AUTO_TEST_CASE(sigmoid_is_within_its_bound) {
  sweep("sigmoid", &SimdProbe::sigmoid, sigmoid_f64, 2.5);
}
BOOST_AUTO_TEST_CASE(sine_is_within_its_bound) { sweep("sine", &SimdProbe::sine, std::sin, 2.5); }
BOOST_AUTO_TEST_CASE(cosine_is_within_its_bound) {
  sweep("cosine", &SimdProbe::cosine, std::cos, 2.5);
}
BOOST_AUTO_TEST_CASE(sqrt_is_rounded_correctly) { sweep("sqrt", &SimdProbe::sqrt, std::sqrt, 0.5); }

BOOST_AUTO_TEST_SUITE_END()
