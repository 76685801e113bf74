#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/report.h"
#include "core/backend.h"
#include "core/parallel.h"

/// Benchmarks: a file of this folder registers one, `longhand bench NAME` runs it.
namespace longhand::app {

struct Timing {
  double median = 0, least = 0;  // seconds
  int rounds = 0;
};

/// Times `body` after one warm-up, at least three times and until `budget` seconds are used.
Timing measure(Backend& backend, double budget, FunctionRef<void()> body);

/// Bytes per second of copying `bytes` from one block of the backend's memory to another: each is
/// read once and written once.
double copy_rate(Backend& backend, double budget, std::size_t bytes);

/// Standard normal values in a new tensor; a short random pattern repeated, which is as good as
/// any for timing and quick to make.
Tensor random_tensor(Backend& backend, const Shape& shape, DType type, std::uint64_t seed);
Tensor random_indices(Backend& backend, const Shape& shape, std::int32_t bound, std::uint64_t seed);

/// The numbers of "2048,512,64"; wrong usage unless there are `count`, each at least 1.
std::vector<std::int64_t> parse_sizes(const std::string& words, std::size_t count);

struct Benchmark {
  std::string name;
  std::string summary;  // one line
  std::string sizes;    // what --size gives, e.g. "M,N,K"
  std::vector<Report::Column> columns;
  /// Adds one row for each thing timed.
  std::function<void(const Arguments&, Backend&, Report&)> run;
};
struct RegisterBenchmark {
  explicit RegisterBenchmark(Benchmark benchmark);
};
const std::map<std::string, Benchmark, std::less<>>& benchmarks();

/// The flags of every benchmark.
double budget_from(const Arguments& arguments);
DType type_from(const Arguments& arguments);

}  // namespace longhand::app
