#include <array>

#include "apps/bench/bench.h"
#include "apps/compute.h"
#include "autograd/chacal.h"
#include "autograd/fal.h"
#include "autograd/tape.h"

namespace longhand::app::attention_memory_benchmark {
namespace {

struct Shapes {
  std::int64_t heads, length, width;
};

/// Shapes with one narrow head, so that the longest sequence takes only seconds.
constexpr std::array shapes{Shapes{1, 1024, 16}, Shapes{1, 4096, 16}, Shapes{1, 16384, 16},
                            Shapes{1, 65536, 16}};

Var attend(const std::string& mechanism, const ScoreVars& scores, const HeadVars& v,
           const Tensor& gamma) {
  if (mechanism == "softmax") return attention(scores, v);
  if (mechanism == "chacal") return chacal(scores, v, gamma);
  return fal({.q = scores.q, .k = scores.k, .v = v, .queries = scores.queries}).y;
}

/// Adds a row to the report: the peak memory allocated by one forward and backward pass, not
/// counting q, k, v and dy.
void add_row(Backend& backend, Report& report, const Shapes& s, DType type,
             const std::string& mechanism, std::uint64_t seed) {
  const Segments segments(backend, std::vector{static_cast<std::int32_t>(s.length)});
  const Shape all{s.length, s.heads * s.width};
  const auto leaf = [&](std::uint64_t number) {
    return all_columns(Var(random_tensor(backend, all, type, seed + number), true), s.heads);
  };
  const HeadVars q = leaf(0), k = leaf(1), v = leaf(2);
  const Tensor dy = random_tensor(backend, all, type, seed + 3);
  const Tensor gamma = Tensor::from(backend, {1}, DType::f32, std::vector{0.9});
  backend.memory().drop_cached();
  backend.memory().reset_peak();
  const std::size_t before = backend.memory().use().live;
  std::size_t kept = 0;
  {
    Tape tape;
    Var y;
    {
      const Recording recording(tape);
      y = attend(mechanism, {.q = q, .k = k, .queries = segments}, v, gamma);
    }
    kept = backend.memory().use().live - before;
    tape.backward(y, dy);
  }
  const auto peak = static_cast<double>(backend.memory().use().peak - before);
  const auto length = static_cast<double>(s.length);
  report.add({{"mechanism", mechanism},
              {"heads", s.heads},
              {"length", s.length},
              {"width", s.width},
              {"kept_bytes", kept},
              {"peak_bytes", peak},
              {"peak_bytes_per_token", peak / length},
              {"matrix_bytes", length * length * static_cast<double>(s.heads) * 4}});
}

void run(const Arguments& arguments, Backend& backend, Report& report) {
  const DType type = type_from(arguments);
  std::vector<Shapes> wanted(shapes.begin(), shapes.end());
  if (arguments.given("size")) {
    wanted.clear();
    for (const std::string& words : arguments.words("size")) {
      const auto n = parse_sizes(words, 3);
      if (n[1] >> 31 != 0) wrong_usage("--size: expected LENGTH below 2^31, got '", words, "'");
      wanted.push_back({n[0], n[1], n[2]});
    }
  }
  report.set("math", name_of(backend.options().math));
  report.set("dtype", name_of(type));
  for (const char* const mechanism : {"softmax", "chacal", "fal"}) {
    for (const Shapes& s : wanted) {
      add_row(backend, report, s, type, mechanism, seed_from(arguments));
    }
  }
}

const RegisterBenchmark benchmark{
    {.name = "attention-memory",
     .summary = "peak memory of softmax attention, ChaCAL and FAL, forward and backward",
     .sizes = "HEADS,LENGTH,WIDTH",
     .columns = {{"mechanism", "mechanism"},
                 {"heads", "heads"},
                 {"length", "length", "%.0f"},
                 {"width", "width"},
                 {"kept_bytes", "kept bytes", "%.0f"},
                 {"peak_bytes", "peak bytes", "%.0f"},
                 {"peak_bytes_per_token", "peak a token", "%.1f"},
                 {"matrix_bytes", "T x T bytes", "%.0f"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app::attention_memory_benchmark
