#include <algorithm>

#include "apps/bench/bench.h"
#include "apps/compute.h"
#include "core/mapped_file.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"

namespace longhand::app::tokenize_benchmark {
namespace {

/// Loads each --tokenizer and encodes the --text with it, on one thread.
void run(const Arguments& arguments, Backend& backend, Report& report) {
  const double budget = budget_from(arguments);
  if (!arguments.given("tokenizer")) wrong_usage("--tokenizer is missing");
  const MappedFile file(arguments.word("text"));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  const auto megabytes = static_cast<double>(text.size()) / 1e6;
  for (const std::string& path : arguments.words("tokenizer")) {
    const Timing load = measure(backend, budget, [&] { nn::read_tokenizer(path); });
    const nn::Tokenizer tokenizer = nn::read_tokenizer(path);
    std::uint64_t tokens = 0;
    // Each round creates a new encoder, so that the time includes filling its cache.
    const Timing time = measure(backend, budget, [&] {
      tokens = 0;
      nn::Encoder(tokenizer).encode(text, {.around = true, .ranges = false},
                                    [&](auto ids, auto) { tokens += ids.size(); });
    });
    report.add({{"tokenizer", path},
                {"load_seconds", load.median},
                {"megabytes", megabytes},
                {"tokens", tokens},
                {"mb_per_second", megabytes / time.median},
                {"best_mb_per_second", megabytes / time.least},
                {"rounds", time.rounds}});
  }
}

const RegisterBenchmark benchmark{
    {.name = "tokenize",
     .summary = "loading of --tokenizer and encoding of --text, on one thread",
     .sizes = "",
     .columns = {{"tokenizer", "tokenizer"},
                 {"load_seconds", "load s", "%.3f"},
                 {"megabytes", "MB", "%.1f"},
                 {"tokens", "tokens", "%.0f"},
                 {"mb_per_second", "MB/s", "%.1f"},
                 {"best_mb_per_second", "best", "%.1f"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app::tokenize_benchmark
