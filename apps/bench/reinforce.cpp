#include <array>
#include <cmath>

#include "apps/bench/bench.h"
#include "apps/compute.h"
#include "core/contract/attention.h"
#include "core/contract/reinforce.h"

namespace longhand::app::reinforce_benchmark {
namespace {

struct Sizes {
  std::int64_t sequences, heads, length, width;
};
constexpr std::array all_sizes{Sizes{8, 8, 512, 64}, Sizes{2, 8, 2048, 64}};

/// One pair (ROW, KEY) for each token, as in the task of reversing a sequence: the query in row ROW
/// of the batch should attend to the key at position KEY of its sequence. Tokens of the second half
/// attend to the tokens of the first half in reverse order. Tokens of the first half attend to
/// themselves.
Tensor reversal(Backend& backend, const Sizes& s) {
  std::vector<std::int32_t> pairs;
  for (std::int64_t row = 0; row < s.sequences * s.length; ++row) {
    const std::int64_t t = row % s.length;
    pairs.push_back(static_cast<std::int32_t>(row));
    pairs.push_back(static_cast<std::int32_t>(std::min(t, s.length - 1 - t)));
  }
  return Tensor::from(backend, {s.sequences * s.length, 2}, pairs);
}

void run(const Arguments& arguments, Backend& backend, Report& report) {
  const double budget = budget_from(arguments);
  const DType type = type_from(arguments);
  std::vector<Sizes> wanted(all_sizes.begin(), all_sizes.end());
  if (arguments.given("size")) {
    wanted.clear();
    for (const std::string& words : arguments.words("size")) {
      const auto n = parse_sizes(words, 4);
      wanted.push_back({n[0], n[1], n[2], n[3]});
    }
  }
  report.set("math", name_of(backend.options().math));
  report.set("dtype", name_of(type));
  for (const Sizes& s : wanted) {
    const std::int64_t rows = s.sequences * s.length;
    std::uint64_t seed = seed_from(arguments);
    const auto heads = [&] {
      return Heads{random_tensor(backend, {rows, s.heads * s.width}, type, seed++), 0, s.heads,
                   s.width};
    };
    const Heads q = heads(), k = heads(), v = heads(), y = heads();
    const std::vector<std::int32_t> lengths(static_cast<std::size_t>(s.sequences),
                                            static_cast<std::int32_t>(s.length));
    const Segments segments(backend, lengths);
    const Scores scores{q, k, segments, segments, 1 / std::sqrt(static_cast<double>(s.width))};
    const Tensor log_sum(backend, {rows, s.heads}, DType::f32);
    const Tensor pairs = reversal(backend, s);
    double plain = 0;
    const auto add = [&](const char* name, std::optional<double> amount) {
      const std::vector<double> all(static_cast<std::size_t>(s.heads), amount.value_or(0));
      const Tensor amounts = Tensor::from(backend, {s.heads}, DType::f32, all);
      const Timing time = measure(backend, budget, [&] {
        if (!amount) return backend(Attention{scores, SoftmaxRule{}, v, y});
        backend(Attention{scores, SoftmaxRule{{}, log_sum}, v, y});
        backend(Reinforce{scores, log_sum, v, pairs, amounts, 0, y});
      });
      if (!amount) plain = time.least;
      report.add({{"attention", name},
                  {"sequences", s.sequences},
                  {"heads", s.heads},
                  {"length", s.length},
                  {"width", s.width},
                  {"ms", 1e3 * time.median},
                  {"best_ms", 1e3 * time.least},
                  {"of_plain", time.least / plain}});
    };
    add("plain", {});
    add("reinforced", 1e-6);
    add("no head chosen", 0);
  }
}

const RegisterBenchmark benchmark{
    {.name = "reinforce",
     .summary =
         "attention, forward, with and without reinforced weights; one pair per token in all heads",
     .sizes = "SEQUENCES,HEADS,LENGTH,WIDTH",
     .columns = {{"attention", "attention"},
                 {"sequences", "sequences"},
                 {"heads", "heads"},
                 {"length", "length"},
                 {"width", "width"},
                 {"ms", "ms", "%.3f"},
                 {"best_ms", "best ms", "%.3f"},
                 {"of_plain", "of plain", "%.3f"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app::reinforce_benchmark
