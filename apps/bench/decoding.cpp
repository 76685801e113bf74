#include <algorithm>
#include <chrono>
#include <numeric>

#include "apps/bench/bench.h"
#include "apps/compute.h"
#include "apps/run/weight_form.h"
#include "core/contract/elementwise.h"
#include "core/contract/matmul.h"
#include "nn/models/decode.h"
#include "nn/models/hugging_face.h"

namespace longhand::app::decoding_benchmark {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A published model: its name and the part of its config.json that describes its architecture.
struct Subject {
  std::string name, config;
};

std::vector<Subject> all_subjects() {
  return {{"smollm2-135m",
           R"({"model_type":"llama","vocab_size":49152,"hidden_size":576,"intermediate_size":1536,
               "num_hidden_layers":30,"num_attention_heads":9,"num_key_value_heads":3,
               "max_position_embeddings":8192,"rope_theta":100000,"rms_norm_eps":1e-5,
               "hidden_act":"silu","tie_word_embeddings":true})"},
          {"qwen2.5-0.5b",
           R"({"model_type":"qwen2","vocab_size":151936,"hidden_size":896,"intermediate_size":4864,
               "num_hidden_layers":24,"num_attention_heads":14,"num_key_value_heads":2,
               "max_position_embeddings":32768,"rope_theta":1000000,"rms_norm_eps":1e-6,
               "hidden_act":"silu","tie_word_embeddings":true})"},
          {"llama-3.2-1b",
           R"({"model_type":"llama","vocab_size":128256,"hidden_size":2048,
               "intermediate_size":8192,"num_hidden_layers":16,"num_attention_heads":32,
               "num_key_value_heads":8,"head_dim":64,"max_position_embeddings":131072,
               "rope_theta":500000,"rms_norm_eps":1e-5,"hidden_act":"silu",
               "tie_word_embeddings":true})"}};
}

std::vector<Subject> wanted_subjects(const Arguments& arguments) {
  const std::vector<Subject> all = all_subjects();
  if (!arguments.given("size")) return {all.front()};
  std::vector<Subject> wanted;
  for (const std::string& name : arguments.words("size")) {
    const auto found = std::ranges::find(all, name, &Subject::name);
    if (found == all.end()) {
      std::string names;
      for (const Subject& s : all) names += (names.empty() ? "" : ", ") + s.name;
      wrong_usage("--size: expected one of ", names, ", got '", name, "'");
    }
    wanted.push_back(*found);
  }
  return wanted;
}

/// Memory bandwidth in bytes per second. On the CPU, all threads read one number per cache line. On
/// a GPU, memory is copied.
double read_rate(Backend& backend, double budget) {
  if (backend.name() == "cuda") return copy_rate(backend, budget, std::size_t{512} << 20);
  constexpr std::size_t line = 64 / sizeof(std::uint64_t), count = (std::size_t{512} << 20) / 8;
  const std::vector<std::uint64_t> numbers(count, 1);
  ThreadPool pool(backend.options().threads);
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(pool.threads()) * line);
  const Timing time = measure(backend, budget, [&] {
    pool.run(count >> 17, [&](std::int64_t chunk, int worker) {
      const std::size_t begin = static_cast<std::size_t>(chunk) << 17;
      std::uint64_t sum = 0;
      for (std::size_t i = begin; i < begin + (1 << 17); i += line) sum += numbers[i];
      sums[static_cast<std::size_t>(worker) * line] += sum;
    });
  });
  return 8 * static_cast<double>(count) / time.least;
}

/// Floating-point operations per second of a product of two matrices. The left matrix is f32 of
/// shape [rows, 2048]. The right matrix is of type `matrices` and of shape [2048, 2048].
double product_rate(Backend& backend, double budget, std::int64_t rows, DType matrices) {
  constexpr std::int64_t n = 2048;
  const Tensor a = random_tensor(backend, {rows, n}, DType::f32, 1);
  const Tensor b = random_tensor(backend, {n, n}, matrices, 2), c = empty_like(a);
  const Timing time = measure(
      backend, budget, [&] { backend(Matmul{.a = a, .b = b, .transpose_b = true, .c = c}); });
  return 2.0 * static_cast<double>(rows * n * n) / time.least;
}

void set_numbers(const nn::Parameters& parameters, std::uint64_t seed) {
  for (const nn::Parameter& p : parameters.all()) {
    Backend& backend = parameters.backend();
    const Tensor x = random_tensor(backend, p.value().shape(), p.value().dtype(), seed++);
    backend(Scale{.x = x, .alpha = 0.02, .y = p.value()});
  }
}

struct Times {
  double prompt;               // seconds until the first token is generated
  std::vector<double> tokens;  // seconds of each token after the first, in ascending order
};

/// Times greedy decoding of `tokens` tokens after a prompt of `prompt` tokens.
Times decode(nn::Decoder& model, std::int64_t prompt, std::int64_t tokens) {
  std::vector<std::int32_t> words(static_cast<std::size_t>(prompt));
  std::iota(words.begin(), words.end(), 0);
  Times times{};
  auto last = Clock::now();
  std::int64_t said = 0;
  nn::generate(model, {{words}}, {.most = tokens, .said = [&](std::size_t, const nn::Choice&) {
                                    const double seconds = seconds_since(last);
                                    said++ == 0 ? times.prompt = seconds
                                                : times.tokens.emplace_back(seconds);
                                    last = Clock::now();
                                    return true;
                                  }});
  std::ranges::sort(times.tokens);
  return times;
}

void time_subject(const Subject& subject, Backend& backend, const WeightForm& form, double budget,
                  std::uint64_t seed, Report& report) {
  const nn::ForeignConfig foreign = nn::parse_config(subject.config, subject.name);
  const DType matrices = form.matrices.value_or(DType::f32);
  nn::Decoder model(backend, foreign.config, seed,
                    nn::Storage{.matrices = matrices, .initial = false});
  set_numbers(model.parameters(), seed);
  put_in_blocks(model, form, subject.name);
  double bytes = 0, numbers = 0;
  for (const nn::Parameter& p : model.parameters().all()) {
    // `bytes` is the number of bytes that are read to decode one token. Only one row of the
    // embedding is read, so the embedding is not counted. An embedding that is also the output
    // layer (tied) is read completely and is counted.
    if (!foreign.config.tied && p == model.embedding().weight) continue;
    bytes += static_cast<double>(p.bytes());
    if (p.shape().rank() >= 2) numbers += static_cast<double>(p.shape().size());
  }
  const auto output = static_cast<double>(model.output().weight.shape().size());

  constexpr std::int64_t context = 16, prompt = 512;
  decode(model, context, 2);  // warm-up
  const double each = decode(model, context, 4).tokens.front();
  const auto count = static_cast<std::int64_t>(std::clamp(budget / each, 8.0, 1000.0));
  const Times times = decode(model, context, count + 1);
  const double ceiling = read_rate(backend, budget);
  const auto add = [&](const char* work, std::int64_t tokens, double median, double least,
                       double rate, double most) {
    report.add(
        {{"model", subject.name},
         {"weights", form.blocks ? small_name(*form.blocks) : std::string(name_of(matrices))},
         {"math", name_of(backend.options().math)},
         {"work", work},
         {"tokens_per_second", static_cast<double>(tokens) / median},
         {"milliseconds", 1e3 * median},
         {"best_ms", 1e3 * least},
         {"rate", rate / 1e9},
         {"ceiling", most / 1e9},
         {"share", rate / most}});
  };
  const double median = times.tokens[times.tokens.size() / 2];
  add("a token, bytes", 1, median, times.tokens.front(), bytes / median, ceiling);

  const double least = std::min(decode(model, prompt, 1).prompt, decode(model, prompt, 1).prompt);
  // The logits are computed for the last token of the prompt only.
  const double work = 2 * (static_cast<double>(prompt) * (numbers - output) + output);
  add("a prompt of 512, flops", prompt, least, least, work / least,
      product_rate(backend, budget, prompt, matrices));

  if (!model.recordable()) return;
  // Times decoding without CUDA graphs. No CUDA graph is recorded while the backend has an
  // observer, even one that does nothing.
  backend.observer = [](std::string_view) {};
  const Times alone = decode(model, context, count + 1);
  backend.observer = nullptr;
  const double slow = alone.tokens[alone.tokens.size() / 2];
  add("a token unrecorded, bytes", 1, slow, alone.tokens.front(), bytes / slow, ceiling);
}

void run(const Arguments& arguments, Backend& backend, Report& report) {
  std::vector<WeightForm> forms{{.matrices = DType::f32}, {.matrices = DType::bf16}};
  for (const GgufType* const type : block_types()) {
    if (type->encode) forms.push_back({.blocks = type});
  }
  if (arguments.given("dtype")) {
    const GgufType* const type = written_gguf_type(arguments.word("dtype"));
    const bool blocks = type && type->block > 1;
    forms = {blocks ? WeightForm{.blocks = type} : WeightForm{.matrices = type_from(arguments)}};
  }
  for (const Subject& subject : wanted_subjects(arguments)) {
    for (const WeightForm& form : forms) {
      time_subject(subject, backend, form, budget_from(arguments), seed_from(arguments), report);
    }
  }
}

const RegisterBenchmark benchmark{
    {.name = "decoding",
     .summary =
         "decoding of one token against memory bandwidth, and the prompt against a matrix product",
     .sizes = "MODEL: smollm2-135m, qwen2.5-0.5b, llama-3.2-1b",
     .columns = {{"model", "model"},
                 {"weights", "weights"},
                 {"math", "math"},
                 {"work", "work"},
                 {"tokens_per_second", "tokens/s", "%.1f"},
                 {"milliseconds", "ms", "%.2f"},
                 {"rate", "G/s", "%.1f"},
                 {"ceiling", "ceiling", "%.1f"},
                 {"share", "share", "%.2f"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app::decoding_benchmark
