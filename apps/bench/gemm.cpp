#include <algorithm>
#include <array>
#include <cmath>

#include "apps/bench/bench.h"
#include "apps/compute.h"
#include "core/contract/matmul.h"

namespace longhand::app::gemm_benchmark {
namespace {

struct Size {
  std::int64_t m, n, k;
};

/// Shapes of products in models: large square products, projections of many tokens, narrow heads,
/// and an output layer over a vocabulary.
constexpr std::array products{
    Size{2048, 2048, 2048}, Size{16384, 512, 512},  Size{16384, 2048, 512},
    Size{16384, 512, 2048}, Size{4096, 1024, 1024}, Size{8192, 192, 64},
    Size{131072, 64, 64},   Size{1024, 1024, 41},   Size{100000, 103, 1024}};

/// States which operands of a product are transposed. The forward product of a layer and its two
/// backward products have different layouts.
struct Layout {
  const char* name;
  bool transpose_a, transpose_b;
};
constexpr std::array layouts{Layout{"a b", false, false}, Layout{"a b^T", false, true},
                             Layout{"a^T b", true, false}};

/// Maximum relative error of a few entries of c = a b, with sums in double. The error of c_ij is
///   |c_ij - sum_k a_ik b_kj| / (|row i of a| |column j of b|).
double sampled_error(const Matmul& op, const Size& p) {
  const std::vector<double> a = op.a.to_doubles(), b = op.b.to_doubles(), c = op.c.to_doubles();
  const auto at = [](const std::vector<double>& x, std::int64_t row, std::int64_t column,
                     std::int64_t rows, std::int64_t columns, bool transposed) {
    return x[static_cast<std::size_t>(transposed ? column * rows + row : row * columns + column)];
  };
  double worst = 0;
  for (std::int64_t sample = 0; sample < 64; ++sample) {
    const std::int64_t i = sample * 7919 % p.m, j = sample * 104729 % p.n;
    double sum = 0, aa = 0, bb = 0;
    for (std::int64_t k = 0; k < p.k; ++k) {
      const double x = at(a, i, k, p.m, p.k, op.transpose_a);
      const double y = at(b, k, j, p.k, p.n, op.transpose_b);
      sum += x * y;
      aa += x * x;
      bb += y * y;
    }
    const double got = c[static_cast<std::size_t>(i * p.n + j)];
    worst = std::max(worst, std::abs(got - sum) / std::sqrt(aa * bb));
  }
  return worst;
}

void run(const Arguments& arguments, Backend& backend, Report& report) {
  const double budget = budget_from(arguments);
  const DType type = type_from(arguments);
  const std::uint64_t seed = seed_from(arguments);
  std::vector<Size> wanted(products.begin(), products.end());
  if (arguments.given("size")) {
    wanted.clear();
    for (const std::string& words : arguments.words("size")) {
      const auto sizes = parse_sizes(words, 3);
      wanted.push_back({sizes[0], sizes[1], sizes[2]});
    }
  }
  std::vector<Math> modes{Math::exact, Math::fast, Math::bf16};
  if (arguments.given("math")) modes = {backend.options().math};

  for (const Size& p : wanted) {
    for (const Layout& layout : layouts) {
      const Shape a = layout.transpose_a ? Shape{p.k, p.m} : Shape{p.m, p.k};
      const Shape b = layout.transpose_b ? Shape{p.n, p.k} : Shape{p.k, p.n};
      Matmul op{.a = random_tensor(backend, a, type, seed),
                .b = random_tensor(backend, b, type, seed + 1),
                .transpose_a = layout.transpose_a,
                .transpose_b = layout.transpose_b,
                .c = Tensor(backend, {p.m, p.n}, DType::f32)};
      const double operations =
          2 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
      for (const Math math : modes) {
        op.math = math;
        const Timing time = measure(backend, budget, [&] { backend(op); });
        report.add({{"m", p.m},
                    {"n", p.n},
                    {"k", p.k},
                    {"layout", layout.name},
                    {"math", name_of(math)},
                    {"gflops", operations / time.median / 1e9},
                    {"best_gflops", operations / time.least / 1e9},
                    {"milliseconds", 1e3 * time.median},
                    {"rounds", time.rounds},
                    {"error", sampled_error(op, p)}});
      }
    }
  }
}

const RegisterBenchmark benchmark{
    {.name = "gemm",
     .summary = "matrix products with the layouts of the forward and backward passes",
     .sizes = "M,N,K",
     .columns = {{"m", "m"},
                 {"n", "n"},
                 {"k", "k"},
                 {"layout", "layout"},
                 {"math", "math"},
                 {"gflops", "GFLOP/s", "%.1f"},
                 {"best_gflops", "best", "%.1f"},
                 {"milliseconds", "ms", "%.3f"},
                 {"error", "error", "%.1e"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app::gemm_benchmark
