// Compares the speed of longhand's matrix product with oneDNN's and OpenBLAS's in one run, on
// row-major operands. The time includes packing and reordering by a library. Prints a table or,
// with --json, one JSON object. Built for development only (-DLONGHAND_PEERS=ON).
//
// gemm_peers [--json] [--threads N] [--bf16 | --fast] [--isa NAME] [m n k]...
//
// The default shapes are those of models. Each shape is run with A and B as they are, with A
// transposed, and with B transposed.
#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <boost/align/aligned_allocator.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/cpu/gemm/gemm.h"
#include "core/json.h"
#include "core/rng.h"

extern "C" void openblas_set_num_threads(int threads);

namespace {

using longhand::bf16;
using longhand::DType;
using longhand::Json;

/// Memory aligned to 64 bytes, like the memory of longhand's tensors. The other libraries also
/// prefer this alignment.
template <class T>
using Values = std::vector<T, boost::alignment::aligned_allocator<T, 64>>;

struct Shape {
  std::int64_t m, n, k;
};
constexpr std::array shapes{
    Shape{2048, 2048, 2048}, Shape{16384, 512, 512},  Shape{16384, 2048, 512},
    Shape{16384, 512, 2048}, Shape{4096, 1024, 1024}, Shape{8192, 192, 64},
    Shape{131072, 64, 64},   Shape{1024, 1024, 41},   Shape{100000, 103, 1024}};

Values<float> random_values(std::int64_t count, unsigned seed) {
  Values<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = seed * 2654435761u + 1u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return values;
}

double now() {
  using clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

/// Returns for each library the minimum time of several calls, in seconds. The calls alternate, so
/// that other load on the machine affects all libraries.
template <std::size_t N>
std::array<double, N> race(const std::array<std::function<void()>, N>& contenders, double flops) {
  std::array<double, N> best;
  best.fill(1e30);
  const int rounds = std::clamp(static_cast<int>(4e10 / flops), 3, 40);
  for (int round = 0; round < rounds + 1; ++round) {
    for (std::size_t i = 0; i < N; ++i) {
      if (!contenders[i]) continue;
      // Threads of the previous library spin for a while after its last call. The loop waits until
      // they sleep, then makes calls that warm the caches.
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      contenders[i]();
      contenders[i]();
      const double start = now();
      contenders[i]();
      if (round > 0) best[i] = std::min(best[i], now() - start);
    }
  }
  return best;
}

/// oneDNN's matmul on plain row-major tensors.
class Dnnl {
 public:
  Dnnl(Shape s, bool ta, bool tb, bool half, void* a, void* b, void* c)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using tag = dnnl::memory::format_tag;
    const auto type = half ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
    const dnnl::memory::desc da({s.m, s.k}, type, ta ? tag::ba : tag::ab),
        db({s.k, s.n}, type, tb ? tag::ba : tag::ab),
        dc({s.m, s.n}, dnnl::memory::data_type::f32, tag::ab);
    matmul_ = dnnl::matmul({{da, db, dc}, engine_});
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(da, engine_, a)},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(db, engine_, b)},
                  {DNNL_ARG_DST, dnnl::memory(dc, engine_, c)}};
  }
  void operator()() {
    matmul_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

Values<bf16> rounded(const Values<float>& values) {
  Values<bf16> out;
  for (float value : values) out.push_back(bf16(value));
  return out;
}

double largest_difference(const Values<float>& a, const Values<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return worst;
}

struct Arguments {
  bool json = false, half = false, fast = false;
  int threads = 2;
  longhand::cpu::Isa isa = longhand::cpu::choose_isa();
  std::vector<Shape> wanted;
};

/// Parses the command line. If an argument is invalid, prints an error and returns no value.
std::optional<Arguments> parse(int argc, char** argv) {
  Arguments all;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--json") {
      all.json = true;
    } else if (flag == "--bf16") {
      all.half = true;
    } else if (flag == "--fast") {
      all.fast = true;
    } else if (flag == "--threads" && i + 1 < argc) {
      all.threads = std::atoi(argv[++i]);
    } else if (flag == "--isa" && i + 1 < argc) {
      all.isa = longhand::cpu::isa_from_name(argv[++i]).value();
    } else if (i + 2 < argc) {
      all.wanted.push_back({std::atoll(argv[i]), std::atoll(argv[i + 1]), std::atoll(argv[i + 2])});
      i += 2;
    } else {
      std::fprintf(stderr, "gemm_peers: unexpected argument '%s'\n", argv[i]);
      return std::nullopt;
    }
  }
  if (all.wanted.empty()) all.wanted.assign(shapes.begin(), shapes.end());
  return all;
}

/// The operands of a matrix product, the result `c` of longhand and the result `peer_c` of the
/// other libraries.
struct Operands {
  explicit Operands(Shape shape)
      : s(shape),
        a(random_values(s.m * s.k, 1)),
        b(random_values(s.k * s.n, 2)),
        half_a(rounded(a)),
        half_b(rounded(b)),
        c(static_cast<std::size_t>(s.m * s.n)),
        peer_c(c) {}
  Shape s;
  Values<float> a, b;
  Values<bf16> half_a, half_b;
  Values<float> c, peer_c;
};

struct Row {
  Shape s;
  const char* layout;
  std::array<double, 3> rates;  // GFLOP/s of longhand, oneDNN and OpenBLAS; 0 if not measured
  double ratio, difference;
};

Row measure(const Arguments& arguments, Operands& x, bool ta, bool tb, longhand::ThreadPool& pool,
            longhand::cpu::GemmWorkspace& workspace) {
  const Shape s = x.s;
  const bool half = arguments.half;
  const std::int64_t lda = ta ? s.m : s.k, ldb = tb ? s.k : s.n;
  const auto type = half ? DType::bf16 : DType::f32;
  const void* pa = half ? static_cast<const void*>(x.half_a.data()) : x.a.data();
  const void* pb = half ? static_cast<const void*>(x.half_b.data()) : x.b.data();
  const longhand::cpu::Gemm g{.m = s.m,
                              .n = s.n,
                              .k = s.k,
                              .a = {.data = pa, .type = type, .ld = lda, .transposed = ta},
                              .b = {.data = pb, .type = type, .ld = ldb, .transposed = tb},
                              .c = {.data = x.c.data(), .type = DType::f32, .ld = s.n},
                              .math = half             ? longhand::Math::bf16
                                      : arguments.fast ? longhand::Math::fast
                                                       : longhand::Math::exact};
  Dnnl peer(s, ta, tb, half, const_cast<void*>(pa), const_cast<void*>(pb), x.peer_c.data());
  std::function<void()> blas = [&] {
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
                static_cast<int>(s.m), static_cast<int>(s.n), static_cast<int>(s.k), 1.0f,
                x.a.data(), static_cast<int>(lda), x.b.data(), static_cast<int>(ldb), 0.0f,
                x.peer_c.data(), static_cast<int>(s.n));
  };
  if (half) blas = nullptr;
  const double flops = 2.0 * static_cast<double>(s.m * s.n) * static_cast<double>(s.k);
  const auto seconds = race<3>(
      {[&] { longhand::cpu::gemm(g, arguments.isa, pool, workspace); }, [&] { peer(); }, blas},
      flops);
  peer();
  const auto rate = [&](double t) { return t < 1e29 ? flops / t / 1e9 : 0.0; };
  return {.s = s,
          .layout = ta   ? "A^T, B"
                    : tb ? "A, B^T"
                         : "A, B",
          .rates = {rate(seconds[0]), rate(seconds[1]), rate(seconds[2])},
          .ratio = seconds[1] / seconds[0],
          .difference = largest_difference(x.c, x.peer_c)};
}

Json to_json(const Row& row) {
  return {{"m", row.s.m},
          {"n", row.s.n},
          {"k", row.s.k},
          {"layout", row.layout},
          {"gflops", row.rates[0]},
          {"onednn_gflops", row.rates[1]},
          {"openblas_gflops", row.rates[2]},
          {"ratio", row.ratio},
          {"difference", row.difference}};
}

void print(const Row& row) {
  std::printf("| %lld | %lld | %lld | %s | %.1f | %.1f | %.1f | %.3f | %.1e |\n",
              static_cast<long long>(row.s.m), static_cast<long long>(row.s.n),
              static_cast<long long>(row.s.k), row.layout, row.rates[0], row.rates[1], row.rates[2],
              row.ratio, row.difference);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> parsed = parse(argc, argv);
  if (!parsed) return 2;
  const Arguments& arguments = *parsed;
  omp_set_num_threads(arguments.threads);
  openblas_set_num_threads(arguments.threads);
  longhand::ThreadPool pool(arguments.threads);
  longhand::cpu::GemmWorkspace workspace;
  std::vector<double> ratios;
  Json rows = Json::array();
  if (!arguments.json) {
    std::printf(
        "| m | n | k | A, B | ours GFLOP/s | oneDNN | OpenBLAS f32 | ours / oneDNN | "
        "difference |\n|---|---|---|---|---|---|---|---|---|\n");
  }
  for (const Shape s : arguments.wanted) {
    Operands operands(s);
    for (int layout = 0; layout < 3; ++layout) {
      const Row row = measure(arguments, operands, layout == 1, layout == 2, pool, workspace);
      ratios.push_back(row.ratio);
      if (arguments.json) {
        rows.push_back(to_json(row));
      } else {
        print(row);
      }
    }
  }
  std::sort(ratios.begin(), ratios.end());
  const double median = (ratios[(ratios.size() - 1) / 2] + ratios[ratios.size() / 2]) / 2;
  if (arguments.json) {
    std::printf("%s\n", Json{{"isa", longhand::cpu::name_of(arguments.isa)},
                             {"threads", arguments.threads},
                             {"type", arguments.half   ? "bf16"
                                      : arguments.fast ? "f32 (fast)"
                                                       : "f32"},
                             {"median_ratio", median},
                             {"least_ratio", ratios.front()},
                             {"rows", rows}}
                            .dump()
                            .c_str());
  } else {
    std::printf("\n%s, %d threads: median ratio %.3f, least %.3f\n",
                std::string(longhand::cpu::name_of(arguments.isa)).c_str(), arguments.threads,
                median, ratios.front());
  }
}
