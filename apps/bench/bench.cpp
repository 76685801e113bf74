#include "apps/bench/bench.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>

#include "core/contract/elementwise.h"
#include "core/rng.h"

namespace longhand::app {
namespace {

std::map<std::string, Benchmark, std::less<>>& benchmark_registry() {
  static std::map<std::string, Benchmark, std::less<>> all;
  return all;
}

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class T>
void upload_pattern(const Tensor& y, const std::vector<T>& pattern) {
  std::vector<T> host(static_cast<std::size_t>(y.size()));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = pattern[i % pattern.size()];
  y.backend().upload(y.address(), host.data(), y.bytes());
}

// Number of random values, which are repeated to fill a tensor. It is prime, so that the rows of a
// matrix differ.
constexpr std::size_t pattern_length = 65521;

}  // namespace

Timing measure(Backend& backend, double budget, FunctionRef<void()> body) {
  const auto once = [&] {
    backend.synchronize();
    const double start = clock_seconds();
    body();
    backend.synchronize();
    return clock_seconds() - start;
  };
  once();
  std::vector<double> seconds;
  const double end = clock_seconds() + budget;
  while (seconds.size() < 3 || (clock_seconds() < end && seconds.size() < 1000))
    seconds.push_back(once());
  std::ranges::sort(seconds);
  const std::size_t count = seconds.size();
  return {(seconds[(count - 1) / 2] + seconds[count / 2]) / 2, seconds.front(),
          static_cast<int>(count)};
}

double copy_rate(Backend& backend, double budget, std::size_t bytes) {
  if (backend.name() == "cuda") {
    const Tensor x(backend, {static_cast<std::int64_t>(bytes)}, DType::u8), y = empty_like(x);
    const Timing time = measure(backend, budget, [&] { backend(Copy{.x = x, .y = y}); });
    return 2 * static_cast<double>(bytes) / time.least;
  }
  ThreadPool pool(backend.options().threads);
  std::vector<char> from(bytes, 1), to(bytes, 2);
  const auto grain = static_cast<std::int64_t>(1) << 20;
  const auto copy = [&] {
    parallel_for(pool, static_cast<std::int64_t>(bytes), grain,
                 [&](std::int64_t begin, std::int64_t end) {
                   std::memcpy(to.data() + begin, from.data() + begin,
                               static_cast<std::size_t>(end - begin));
                 });
  };
  const Timing time = measure(backend, budget, copy);
  return 2 * static_cast<double>(bytes) / time.least;
}

Tensor random_tensor(Backend& backend, const Shape& shape, DType type, std::uint64_t seed) {
  Rng rng(seed, Purpose::test);
  Tensor y(backend, shape, type);
  const auto fill = [&]<class T>(T) {
    std::vector<T> pattern(pattern_length);
    for (T& value : pattern) value = T(static_cast<float>(rng.normal()));
    upload_pattern(y, pattern);
  };
  LONGHAND_CHECK(is_float(type), "random values: expected a float type, got ", type);
  visit_dtype(type, fill);
  return y;
}

Tensor random_indices(Backend& backend, const Shape& shape, std::int32_t bound,
                      std::uint64_t seed) {
  Rng rng(seed, Purpose::test);
  Tensor y(backend, shape, DType::i32);
  std::vector<std::int32_t> pattern(pattern_length);
  for (std::int32_t& value : pattern) {
    value = static_cast<std::int32_t>(rng.below(static_cast<std::uint32_t>(bound)));
  }
  upload_pattern(y, pattern);
  return y;
}

std::vector<std::int64_t> parse_sizes(const std::string& words, std::size_t count) {
  std::vector<std::int64_t> sizes;
  for (std::size_t start = 0; start <= words.size();) {
    const std::size_t comma = std::min(words.find(',', start), words.size());
    sizes.push_back(
        parse_integer("--size", words.substr(start, comma - start), 1, std::int64_t{1} << 31));
    start = comma + 1;
  }
  if (sizes.size() != count) {
    wrong_usage("--size: expected ", count, " numbers separated by commas, got '", words, "'");
  }
  return sizes;
}

RegisterBenchmark::RegisterBenchmark(Benchmark benchmark) {
  std::string name = benchmark.name;
  benchmark_registry().emplace(std::move(name), std::move(benchmark));
}

const std::map<std::string, Benchmark, std::less<>>& benchmarks() { return benchmark_registry(); }

double budget_from(const Arguments& arguments) {
  const std::string& word = arguments.word("seconds");
  double seconds = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), seconds);
  if (error != std::errc() || end != word.data() + word.size() || !(seconds >= 0) ||
      seconds > 3600) {
    wrong_usage("--seconds: expected a number from 0 to 3600, got '", word, "'");
  }
  return seconds;
}

DType type_from(const Arguments& arguments) {
  const std::string& word = arguments.word("dtype");
  if (word == "f32") return DType::f32;
  if (word == "bf16") return DType::bf16;
  wrong_usage("--dtype: expected f32 or bf16, got '", word, "'");
}

}  // namespace longhand::app
