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

/// Memory aligned to 64 bytes, as that of tensors is and as the peers prefer.
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

/// Minimum seconds of several calls of each library. The calls alternate, so that other load on the
/// machine affects all libraries.
template <std::size_t N>
std::array<double, N> race(const std::array<std::function<void()>, N>& contenders, double flops) {
  std::array<double, N> best;
  best.fill(1e30);
  const int rounds = std::clamp(static_cast<int>(4e10 / flops), 3, 40);
  for (int round = 0; round < rounds + 1; ++round) {
    for (std::size_t i = 0; i < N; ++i) {
      if (!contenders[i]) continue;
      // Threads of the previous library spin for a while after its last call. Waits until they
      // sleep, then warms the caches.
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

}  // namespace

int main(int argc, char** argv) {
  bool json = false, half = false, fast = false;
  int threads = 2;
  auto isa = longhand::cpu::choose_isa();
  std::vector<Shape> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--json") {
      json = true;
    } else if (flag == "--bf16") {
      half = true;
    } else if (flag == "--fast") {
      fast = true;
    } else if (flag == "--threads" && i + 1 < argc) {
      threads = std::atoi(argv[++i]);
    } else if (flag == "--isa" && i + 1 < argc) {
      isa = longhand::cpu::isa_from_name(argv[++i]).value();
    } else if (i + 2 < argc) {
      wanted.push_back({std::atoll(argv[i]), std::atoll(argv[i + 1]), std::atoll(argv[i + 2])});
      i += 2;
    } else {
      std::fprintf(stderr, "gemm_peers: unexpected argument '%s'\n", argv[i]);
      return 2;
    }
  }
  if (wanted.empty()) wanted.assign(shapes.begin(), shapes.end());
  omp_set_num_threads(threads);
  openblas_set_num_threads(threads);
  longhand::ThreadPool pool(threads);
  longhand::cpu::GemmWorkspace workspace;
  std::vector<double> ratios;
  Json rows = Json::array();
  if (!json) {
    std::printf(
        "| m | n | k | A, B | ours GFLOP/s | oneDNN | OpenBLAS f32 | ours / oneDNN | "
        "difference |\n|---|---|---|---|---|---|---|---|---|\n");
  }
  for (const Shape s : wanted) {
    const auto a = random_values(s.m * s.k, 1), b = random_values(s.k * s.n, 2);
    const auto half_a = rounded(a), half_b = rounded(b);
    Values<float> c(static_cast<std::size_t>(s.m * s.n)), peer_c = c;
    for (int layout = 0; layout < 3; ++layout) {
      const bool ta = layout == 1, tb = layout == 2;
      const std::int64_t lda = ta ? s.m : s.k, ldb = tb ? s.k : s.n;
      const auto type = half ? DType::bf16 : DType::f32;
      const void* pa = half ? static_cast<const void*>(half_a.data()) : a.data();
      const void* pb = half ? static_cast<const void*>(half_b.data()) : b.data();
      const longhand::cpu::Gemm g{.m = s.m,
                                  .n = s.n,
                                  .k = s.k,
                                  .a = {.data = pa, .type = type, .ld = lda, .transposed = ta},
                                  .b = {.data = pb, .type = type, .ld = ldb, .transposed = tb},
                                  .c = {.data = c.data(), .type = DType::f32, .ld = s.n},
                                  .math = half   ? longhand::Math::bf16
                                          : fast ? longhand::Math::fast
                                                 : longhand::Math::exact};
      Dnnl peer(s, ta, tb, half, const_cast<void*>(pa), const_cast<void*>(pb), peer_c.data());
      std::function<void()> blas = [&] {
        cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
                    static_cast<int>(s.m), static_cast<int>(s.n), static_cast<int>(s.k), 1.0f,
                    a.data(), static_cast<int>(lda), b.data(), static_cast<int>(ldb), 0.0f,
                    peer_c.data(), static_cast<int>(s.n));
      };
      if (half) blas = nullptr;
      const double flops = 2.0 * static_cast<double>(s.m * s.n) * static_cast<double>(s.k);
      const auto seconds = race<3>(
          {[&] { longhand::cpu::gemm(g, isa, pool, workspace); }, [&] { peer(); }, blas}, flops);
      peer();
      const double difference = largest_difference(c, peer_c);
      const double ratio = seconds[1] / seconds[0];
      ratios.push_back(ratio);
      const auto rate = [&](double t) { return t < 1e29 ? flops / t / 1e9 : 0.0; };
      const char* name = ta ? "A^T, B" : tb ? "A, B^T" : "A, B";
      if (json) {
        rows.push_back(Json{{"m", s.m},
                            {"n", s.n},
                            {"k", s.k},
                            {"layout", name},
                            {"gflops", rate(seconds[0])},
                            {"onednn_gflops", rate(seconds[1])},
                            {"openblas_gflops", rate(seconds[2])},
                            {"ratio", ratio},
                            {"difference", difference}});
      } else {
        std::printf("| %lld | %lld | %lld | %s | %.1f | %.1f | %.1f | %.3f | %.1e |\n",
                    static_cast<long long>(s.m), static_cast<long long>(s.n),
                    static_cast<long long>(s.k), name, rate(seconds[0]), rate(seconds[1]),
                    rate(seconds[2]), ratio, difference);
        std::fflush(stdout);
      }
    }
  }
  std::sort(ratios.begin(), ratios.end());
  const double median = (ratios[(ratios.size() - 1) / 2] + ratios[ratios.size() / 2]) / 2;
  if (json) {
    std::printf("%s\n", Json{{"isa", longhand::cpu::name_of(isa)},
                             {"threads", threads},
                             {"type", half   ? "bf16"
                                      : fast ? "f32 (fast)"
                                             : "f32"},
                             {"median_ratio", median},
                             {"least_ratio", ratios.front()},
                             {"rows", rows}}
                            .dump()
                            .c_str());
  } else {
    std::printf("\n%s, %d threads: median ratio %.3f, least %.3f\n",
                std::string(longhand::cpu::name_of(isa)).c_str(), threads, median, ratios.front());
  }
}
