#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/report.h"
#include "core/backend.h"
#include "core/parallel.h"

/// Benchmarks. Each file of this folder registers one benchmark, which `longhand bench NAME` runs.
namespace longhand::app {

struct Timing {
  double median = 0, least = 0;  // seconds
  int rounds = 0;
};

/// Calls `body` once to warm up. Then times calls of `body` until `budget` seconds are used, but at
/// least three calls and at most 1,000.
Timing measure(Backend& backend, double budget, FunctionRef<void()> body);

/// Bytes per second when copying `bytes` between two blocks of the backend's memory. Each byte
/// counts twice: it is read once and written once.
double copy_rate(Backend& backend, double budget, std::size_t bytes);

/// A new tensor of standard normal values. It repeats a short sequence of random values, which is
/// fast and sufficient for timing.
Tensor random_tensor(Backend& backend, const Shape& shape, DType type, std::uint64_t seed);
Tensor random_indices(Backend& backend, const Shape& shape, std::int32_t bound, std::uint64_t seed);

/// Parses numbers such as "2048,512,64". Throws UsageError unless there are `count` numbers, each
/// at least 1.
std::vector<std::int64_t> parse_sizes(const std::string& words, std::size_t count);

struct Benchmark {
  std::string name;
  std::string summary;  // one line for the list of benchmarks
  std::string sizes;    // format of --size, e.g. "M,N,K"
  std::vector<Report::Column> columns;
  /// Times the kernels, and adds one row per kernel to the report.
  std::function<void(const Arguments&, Backend&, Report&)> run;
};
struct RegisterBenchmark {
  explicit RegisterBenchmark(Benchmark benchmark);
};
const std::map<std::string, Benchmark, std::less<>>& benchmarks();

/// The values of the flags that every benchmark accepts: --seconds, the time spent on each
/// measurement, and --dtype, the type of the tensors.
double budget_from(const Arguments& arguments);
DType type_from(const Arguments& arguments);

}  // namespace longhand::app
