#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>
#include "tests/check.h"

#include "core/cpu/isa.h"
#include "core/rng.h"
#include "tests/simd_probe.h"

BOOST_AUTO_TEST_SUITE(simd_test)

using namespace longhand;
using namespace longhand::cpu;

namespace {

/// An array of n elements. It ends where an inaccessible page starts, so an access beyond the array
/// crashes.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::int64_t n) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    base_ = static_cast<std::byte*>(
        mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    BOOST_REQUIRE(base_ != MAP_FAILED);
    BOOST_REQUIRE(mprotect(base_ + page_, page_, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(base_ + page_) - n;
  }
  ~Guarded() { munmap(base_, 2 * page_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  T* data() { return data_; }

 private:
  std::size_t page_;
  std::byte* base_;
  T* data_;
};

template <class Body>
void for_each_isa(Body&& body) {
  std::vector<Isa> isas = supported_isas();
  if (supports(Isa::fused)) isas.push_back(Isa::fused);
  for (const Isa isa : isas) {
    BOOST_TEST_CONTEXT(name_of(isa)) { body(kernels_for<SimdProbe>(isa)); }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(partial_loads_and_stores_access_nothing_beyond) {
  for_each_isa([](const SimdProbe& probe) {
    for (std::int64_t n = 0; n <= 2 * probe.lanes + 1; ++n) {
      Guarded<float> x(n), y(n);
      Guarded<bf16> half(n);
      Guarded<std::int32_t> words(n);
      for (std::int64_t i = 0; i < n; ++i) x.data()[i] = static_cast<float>(i) - 3;
      y.data()[-1] = 77;
      half.data()[-1] = bf16(77);
      probe.narrow(x.data(), half.data(), n);
      probe.widen(half.data(), y.data(), n);
      BOOST_TEST(y.data()[-1] == 77);
      BOOST_TEST(static_cast<float>(half.data()[-1]) == 77);
      for (std::int64_t i = 0; i < n; ++i) BOOST_TEST(y.data()[i] == x.data()[i]);
      for (std::int64_t i = 0; i < n; ++i) words.data()[i] = std::bit_cast<std::int32_t>(1.5f);
      probe.copy_words(words.data(), y.data(), n);
      for (std::int64_t i = 0; i < n; ++i) BOOST_TEST(y.data()[i] == 1.5f);
    }
  });
}

BOOST_AUTO_TEST_CASE(bf16_rounds_as_the_scalar_type_does) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4093) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  // Also tests values halfway between two bf16 numbers, and the neighbours of these values.
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0x7fffu, 0x8000u, 0x8001u}) {
      x.push_back(std::bit_cast<float>((high << 16) | low));
    }
  }
  for_each_isa([&](const SimdProbe& probe) {
    std::vector<bf16> y(x.size());
    probe.narrow(x.data(), y.data(), std::ssize(x));
    std::size_t different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) different += y[i].bits != bf16(x[i]).bits;
    BOOST_TEST(different == 0u);
  });
}

BOOST_AUTO_TEST_CASE(sums_and_maxima_include_every_lane) {
  for_each_isa([](const SimdProbe& probe) {
    std::vector<float> x(static_cast<std::size_t>(3 * probe.lanes), -1.0f);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = 1024.0f;
      BOOST_TEST(probe.sum(x.data(), std::ssize(x)) == 1025.0f - static_cast<float>(x.size()));
      BOOST_TEST(probe.largest(x.data(), std::ssize(x)) == 1024.0f);
      x[i] = -1.0f;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(probe.lanes); ++i) {
      BOOST_TEST(!probe.any_greater(x.data(), 0));
      x[i] = 2;
      BOOST_TEST(probe.any_greater(x.data(), 0));
      x[i] = -1;
    }
  });
}

BOOST_AUTO_TEST_CASE(the_maximum_with_a_nan_is_its_second_operand) {
  for_each_isa([](const SimdProbe& probe) {
    const std::size_t n = static_cast<std::size_t>(probe.lanes);
    const std::vector<float> nan(n, std::nanf("")), one(n, 1.0f);
    std::vector<float> y(n);
    probe.greater(nan.data(), one.data(), y.data());
    BOOST_TEST(y.back() == 1.0f);
    probe.greater(one.data(), nan.data(), y.data());
    BOOST_TEST(std::isnan(y.back()));
  });
}

BOOST_AUTO_TEST_CASE(fused_multiply_add_rounds_once) {
  const float a = 1.0f + std::numeric_limits<float>::epsilon();
  // The square of a = 1 + epsilon, rounded to f32 and negated.
  const float minus = -(1.0f + 2 * std::numeric_limits<float>::epsilon());
  const float once = std::fma(a, a, minus);
  BOOST_TEST(once != 0);
  for_each_isa([&](const SimdProbe& probe) {
    BOOST_TEST((probe.fma(a, a, minus) == once) == probe.fused_multiply_add);
  });
}

BOOST_AUTO_TEST_CASE(fused_multiply_add_rounds_every_sum_to_nearest) {
  Rng rng(1, Purpose::test);
  // A build with LONGHAND_WEAKEST_ISA may have no kernels for this instruction set.
  if (!supports(Isa::fused)) return;
  const SimdProbe& fused = kernels_for<SimdProbe>(Isa::fused);
  // Returns a random number whose significand has one or two bits set. For such numbers,
  // a * b + c is often near the midpoint between two neighbouring floats.
  const auto sparse = [&](int largest) {
    const auto bit = [&](int i) { return std::ldexp(1.0f, -static_cast<int>(rng.below(i))); };
    const float x = (1 + bit(24)) * std::ldexp(1.0f, static_cast<int>(rng.below(largest)) - 30);
    return rng.below(2) == 0 ? x : -x;
  };
  // Returns a float with random bits, which can be subnormal, infinite or NaN.
  const auto any = [&] { return std::bit_cast<float>(rng.next()); };
  int halfway = 0;
  for (int i = 0; i < 400000; ++i) {
    const bool wild = i % 4 == 0;
    const float a = wild ? any() : sparse(60), b = wild ? any() : sparse(60);
    const float c = wild ? any() : sparse(60) * (i % 2 == 0 ? 1.0f : std::ldexp(1.0f, -30));
    const float expected = std::fma(a, b, c), got = fused.fma(a, b, c);
    const bool same = std::isnan(expected) ? std::isnan(got)
                                           : std::bit_cast<std::uint32_t>(got) ==
                                                 std::bit_cast<std::uint32_t>(expected);
    BOOST_REQUIRE_MESSAGE(
        same, a << " * " << b << " + " << c << ": expected " << expected << ", got " << got);
    // Rounding the sum to f64 first gives another float in these cases.
    const double twice = static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c);
    halfway += static_cast<float>(twice) != expected && !std::isnan(expected);
  }
  BOOST_TEST(halfway > 100);
}

BOOST_AUTO_TEST_SUITE_END()
